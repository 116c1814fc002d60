// A kernel as its shared object gives it: how it is called, told from its prototype.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_KERNEL_ENTRY_H
#define WEFT_APEIRON_KERNEL_ENTRY_H

#include "../hapecom.h"
#include <initializer_list>
#include <memory>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace weft_apeiron {

// A parameter that the host sets.
struct Argument {
    enum class Kind { Integer, Real, Buffer };
    Kind kind = Kind::Integer;
    std::int64_t integer = 0;
    double real = 0;
    void *buffer = nullptr;
};

// The streams of a kernel: arrays, and those that join it to other kernels, by the places of its parameters.
struct Channels {
    message_stream_t *data_in, *data_out;
    header_stream_t *header_in, *header_out;
    void *const *joined;
};

// A stream that joins two kernels, as both see it.
struct JoinedStream {
    std::shared_ptr<void> stream;
    StreamControl *control;
};

// A parameter of a kernel before its channels.
struct ParameterTable {
    // As its source calls it; NULL: not known.
    const char *name;
    // Whether it takes a buffer.
    bool takes_buffer;
    // Of a stream, the type of its words, and how one is made; NULL: it is none.
    const std::type_info *words;
    JoinedStream (*make)();
};

// A kernel, as the host calls it.
struct KernelTable {
    // Parameters before the channels.
    unsigned count;
    const ParameterTable *parameters;
    // Whether it writes and reads headers itself.
    bool has_headers;
    void (*call)(const Argument *arguments, const Channels &channels);
    void (*join)(Executor *executor);
};

// The value of an argument as a parameter has it.
template <typename T, bool IS_POINTER>
struct Parameter;

template <typename T>
struct Parameter<T, true> {
    static T of(const Argument &argument) { return static_cast<T>(argument.buffer); }
};

template <typename T>
struct Parameter<T, false> {
    static_assert(IsNumber<T>::value,
                  "a parameter of a kernel, before its streams, is a number or a pointer to memory here");
    static T of(const Argument &argument)
    {
        return argument.kind == Argument::Kind::Real ? T(argument.real) : T(argument.integer);
    }
};

// Whether a parameter is a stream that joins kernels.
template <typename T>
struct JoinedParameter : std::false_type {
    static const std::type_info *words() { return nullptr; }
    static JoinedStream make() { return {}; }
};

template <typename W, int DEPTH>
struct JoinedParameter<hls::stream<W, DEPTH> &> : std::true_type {
    static const std::type_info *words() { return &typeid(W); }
    // The depth is the design's, whatever the prototype says: such streams differ in that alone.
    static JoinedStream make()
    {
        auto stream = std::make_shared<hls::stream<W, DEPTH>>();
        StreamControl &control = stream->control();
        return {stream, &control};
    }
};

template <typename T>
struct IsStreamArray : std::false_type {
};
template <typename W, int DEPTH>
struct IsStreamArray<hls::stream<W, DEPTH> *> : std::true_type {
};

template <typename F, F *function>
struct Kernel;

template <typename... P, void (*function)(P...)>
struct Kernel<void(P...), function> {
    static constexpr std::size_t ALL = sizeof...(P);
    static_assert(ALL >= 2, "the last parameters of a kernel are message_stream_t message_data_in[N_INPUT_CHANNELS] "
                            "and message_stream_t message_data_out[N_OUTPUT_CHANNELS] (D2.8 section 3)");

    template <std::size_t I>
    using Type = typename std::tuple_element<I, std::tuple<P...>>::type;

    // As appendix B has it: header_stream_t beside each message_stream_t.
    static constexpr bool HEADERS = ALL >= 4 && std::is_same<Type<ALL - 2>, header_stream_t *>::value;
    static constexpr std::size_t PARAMETERS = ALL - (HEADERS ? 4 : 2);
    static_assert(std::is_same<Type<ALL - 1>, message_stream_t *>::value &&
                      std::is_same<Type<HEADERS ? ALL - 3 : ALL - 2>, message_stream_t *>::value,
                  "the last parameters of a kernel are message_stream_t message_data_in[N_INPUT_CHANNELS] and "
                  "message_stream_t message_data_out[N_OUTPUT_CHANNELS], or, with headers, message_hdr_in, "
                  "message_data_in, message_hdr_out and message_data_out (D2.8 section 3, appendix B)");

    // Whether the host gives each parameter: those that are streams it does not.
    static constexpr bool is_given(std::size_t at)
    {
        const bool joined[] = {JoinedParameter<P>::value...};
        return !joined[at];
    }

    // Arguments of the host before that parameter.
    static constexpr std::size_t given_before(std::size_t parameter)
    {
        std::size_t given = 0;
        for (std::size_t at = 0; at < parameter; at++)
            given += is_given(at);
        return given;
    }

    template <std::size_t I>
    static Type<I> value(const Argument *arguments, const Channels &channels, std::true_type)
    {
        return before_channels<I>(arguments, channels, JoinedParameter<Type<I>>());
    }

    template <std::size_t I>
    static Type<I> before_channels(const Argument *arguments, const Channels &, std::false_type)
    {
        using T = typename std::remove_cv<Type<I>>::type;
        static_assert(!IsStreamArray<T>::value,
                      "a stream that joins a kernel to another is a parameter hls::stream<TYPE> &name, of which "
                      "config.yaml says the other end in `streams`; arrays of them are not there");
        return Parameter<T, std::is_pointer<T>::value>::of(arguments[given_before(I)]);
    }

    template <std::size_t I>
    static Type<I> before_channels(const Argument *, const Channels &channels, std::true_type)
    {
        return *static_cast<typename std::remove_reference<Type<I>>::type *>(channels.joined[I]);
    }

    template <std::size_t I>
    static Type<I> value(const Argument *, const Channels &channels, std::false_type)
    {
        return stream(channels, std::integral_constant<std::size_t, ALL - I>());
    }

    // By how many parameters follow.
    static message_stream_t *stream(const Channels &channels, std::integral_constant<std::size_t, 1>)
    {
        return channels.data_out;
    }
    template <std::size_t I>
    static typename std::conditional<HEADERS && I != 3, header_stream_t *, message_stream_t *>::type
    stream(const Channels &channels, std::integral_constant<std::size_t, I>)
    {
        return pick(channels, std::integral_constant<bool, HEADERS>(), std::integral_constant<std::size_t, I>());
    }
    static message_stream_t *pick(const Channels &channels, std::false_type, std::integral_constant<std::size_t, 2>)
    {
        return channels.data_in;
    }
    static header_stream_t *pick(const Channels &channels, std::true_type, std::integral_constant<std::size_t, 2>)
    {
        return channels.header_out;
    }
    static message_stream_t *pick(const Channels &channels, std::true_type, std::integral_constant<std::size_t, 3>)
    {
        return channels.data_in;
    }
    static header_stream_t *pick(const Channels &channels, std::true_type, std::integral_constant<std::size_t, 4>)
    {
        return channels.header_in;
    }

    template <std::size_t... I>
    static void apply(const Argument *arguments, const Channels &channels, std::index_sequence<I...>)
    {
        function(value<I>(arguments, channels, std::integral_constant<bool, (I < PARAMETERS)>())...);
    }

    static void call(const Argument *arguments, const Channels &channels)
    {
        apply(arguments, channels, std::index_sequence_for<P...>());
    }

    static void join(Executor *runs) { executor() = runs; }

    // `names`: those of the first parameters, as far as they are known.
    static const KernelTable *table(std::initializer_list<const char *> names)
    {
        static ParameterTable parameters[] = {
            {nullptr, std::is_pointer<P>::value, JoinedParameter<P>::words(), &JoinedParameter<P>::make}...};
        std::size_t at = 0;
        for (const char *name : names)
            if (at < ALL)
                parameters[at++].name = name;
        static const KernelTable own = {PARAMETERS, parameters, HEADERS, &call, &join};
        return &own;
    }
};

}  // namespace weft_apeiron

// The name by which the host finds the kernel: the only one that is not its own, so that replicas share nothing. Behind
// the function are the names of its parameters.
#define WEFT_APEIRON_KERNEL(function, ...)                                                                             \
    extern "C" __attribute__((visibility("default"))) const weft_apeiron::KernelTable *weft_apeiron_kernel()           \
    {                                                                                                                  \
        return weft_apeiron::Kernel<decltype(function), &function>::table({__VA_ARGS__});                              \
    }

#endif
