// A kernel as its shared object gives it: how it is called, told from its prototype.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_KERNEL_ENTRY_H
#define WEFT_APEIRON_KERNEL_ENTRY_H

#include "../hapecom.h"
#include <tuple>
#include <type_traits>
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

// The streams of a kernel: arrays.
struct Channels {
    message_stream_t *data_in, *data_out;
    header_stream_t *header_in, *header_out;
};

// A kernel, as the host calls it.
struct KernelTable {
    // Parameters before the streams.
    unsigned parameters;
    // Whether each of them takes a buffer.
    const bool *takes_buffer;
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

    template <std::size_t I>
    static Type<I> value(const Argument *arguments, const Channels &, std::true_type)
    {
        using T = typename std::remove_cv<Type<I>>::type;
        return Parameter<T, std::is_pointer<T>::value>::of(arguments[I]);
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

    static const KernelTable *table()
    {
        static const bool takes_buffer[] = {std::is_pointer<P>::value...};
        static const KernelTable own = {PARAMETERS, takes_buffer, HEADERS, &call, &join};
        return &own;
    }
};

}  // namespace weft_apeiron

// The name by which the host finds the kernel: the only one that is not its own, so that replicas share nothing.
#define WEFT_APEIRON_KERNEL(function)                                                                                  \
    extern "C" __attribute__((visibility("default"))) const weft_apeiron::KernelTable *weft_apeiron_kernel()           \
    {                                                                                                                  \
        return weft_apeiron::Kernel<decltype(function), &function>::table();                                           \
    }

#endif
