// ap_int<W> and ap_uint<W>: integers of any width, as HLS kernels use them.
//
// Written for weft: the packaged implementations are either parts of a vendor's tool or bring more than kernels use
// here. Results are as wide as UG1399 has them: a sum has a bit more than its operands, a product as many as both.
// Not here: ranges and concatenations that are assigned to as one (`(a, b) = c`).
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_AP_INT_H
#define WEFT_AP_INT_H

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

template <int W, bool S>
class ap_int_base;
template <int W>
class ap_int;
template <int W>
class ap_uint;
template <int W, bool S>
class ap_range_ref;
template <int W, bool S>
class ap_bit_ref;

namespace weft_apeiron {

constexpr int larger(int one, int other) { return one < other ? other : one; }
constexpr int smaller(int one, int other) { return one < other ? one : other; }

// The built-in type of `bits` bits and a sign.
template <int BYTES, bool S>
struct Native;
template <>
struct Native<1, true> { using type = std::int8_t; };
template <>
struct Native<1, false> { using type = std::uint8_t; };
template <>
struct Native<2, true> { using type = std::int16_t; };
template <>
struct Native<2, false> { using type = std::uint16_t; };
template <>
struct Native<4, true> { using type = std::int32_t; };
template <>
struct Native<4, false> { using type = std::uint32_t; };
template <>
struct Native<8, true> { using type = std::int64_t; };
template <>
struct Native<8, false> { using type = std::uint64_t; };

constexpr int native_bytes(int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; }

// The widths and signs of results.
template <int W1, bool S1, int W2, bool S2>
struct Result {
    static constexpr bool S = S1 || S2;
    // Both, as numbers of one sign.
    static constexpr int BOTH = larger(W1 + (S2 && !S1), W2 + (S1 && !S2));
    using both = ap_int_base<BOTH, S>;
    using sum = ap_int_base<BOTH + 1, S>;
    using difference = ap_int_base<BOTH + 1, true>;
    using product = ap_int_base<W1 + W2, S>;
    using quotient = ap_int_base<W1 + S2, S>;
    using remainder = ap_int_base<smaller(W1, W2 + (!S2 && S1)), S1>;
};

// A built-in integer as one of these.
template <typename T>
using Of = ap_int_base<static_cast<int>(8 * sizeof(T)), std::is_signed<T>::value>;

// Whether a value of this type is a number that these can be made of.
template <typename T>
struct IsNumber {
    static constexpr bool value = std::is_arithmetic<T>::value || std::is_enum<T>::value;
};
template <int W, bool S>
struct IsNumber<ap_int_base<W, S>> { static constexpr bool value = true; };
template <int W>
struct IsNumber<ap_int<W>> { static constexpr bool value = true; };
template <int W>
struct IsNumber<ap_uint<W>> { static constexpr bool value = true; };
template <int W, bool S>
struct IsNumber<ap_range_ref<W, S>> { static constexpr bool value = true; };
template <int W, bool S>
struct IsNumber<ap_bit_ref<W, S>> { static constexpr bool value = true; };

template <typename T>
using IfNumber = typename std::enable_if<IsNumber<T>::value, int>::type;

template <typename T>
using IfInteger = typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value, int>::type;

}  // namespace weft_apeiron

// Bits of a number that can be read and assigned.
template <int W, bool S>
class ap_range_ref {
  public:
    ap_range_ref(ap_int_base<W, S> &of, int high, int low) : of_(of), high_(high), low_(low) {}
    ap_range_ref(const ap_range_ref &) = default;

    ap_uint<W> get() const { return of_.bits(high_, low_); }
    operator ap_uint<W>() const { return get(); }
    operator std::uint64_t() const { return get().to_uint64(); }
    std::uint64_t to_uint64() const { return get().to_uint64(); }
    std::int64_t to_int64() const { return get().to_int64(); }
    unsigned to_uint() const { return get().to_uint(); }
    int to_int() const { return get().to_int(); }
    int length() const { return (high_ < low_ ? low_ - high_ : high_ - low_) + 1; }

    template <typename T>
    ap_range_ref &operator=(const T &value)
    {
        of_.set_bits(high_, low_, ap_uint<W>(value));
        return *this;
    }

    ap_range_ref &operator=(const ap_range_ref &other)
    {
        of_.set_bits(high_, low_, other.get());
        return *this;
    }

  private:
    ap_int_base<W, S> &of_;
    int high_, low_;
};

// A bit of a number that can be read and assigned.
template <int W, bool S>
class ap_bit_ref {
  public:
    ap_bit_ref(ap_int_base<W, S> &of, int place) : of_(of), place_(place) {}
    ap_bit_ref(const ap_bit_ref &) = default;

    operator bool() const { return of_.test(place_); }
    bool to_bool() const { return of_.test(place_); }

    ap_bit_ref &operator=(bool value)
    {
        of_.set_bit(place_, value);
        return *this;
    }

    ap_bit_ref &operator=(const ap_bit_ref &other) { return *this = static_cast<bool>(other); }

  private:
    ap_int_base<W, S> &of_;
    int place_;
};

// A number of W bits: two's complement where S, in limbs of 64 bits; bits beyond W repeat the sign, or are 0.
template <int W, bool S>
class ap_int_base {
    static_assert(W >= 1 && W <= 4096, "ap_int and ap_uint have 1 to 4096 bits");

  public:
    static constexpr int width = W;
    static constexpr int LIMBS = (W + 63) / 64;

    ap_int_base() : limb_() {}

    template <typename T, weft_apeiron::IfInteger<T> = 0>
    ap_int_base(T value) : limb_()
    {
        const bool negative = std::is_signed<T>::value && static_cast<std::int64_t>(value) < 0;
        limb_[0] = static_cast<std::uint64_t>(value);
        for (int at = 1; at < LIMBS; at++)
            limb_[at] = negative ? ~std::uint64_t(0) : 0;
        trim();
    }

    ap_int_base(double value) : ap_int_base(static_cast<std::int64_t>(value)) {}

    template <int W2, bool S2>
    ap_int_base(const ap_int_base<W2, S2> &other)
    {
        for (int at = 0; at < LIMBS; at++)
            limb_[at] = other.limb(at);
        trim();
    }

    template <int W2, bool S2>
    ap_int_base(const ap_range_ref<W2, S2> &bits) : ap_int_base(bits.get()) {}

    template <int W2, bool S2>
    ap_int_base(const ap_bit_ref<W2, S2> &bit) : ap_int_base(static_cast<bool>(bit)) {}

    // Digits in that base, with a prefix (0x, 0b, 0o) or without, and a minus.
    ap_int_base(const char *digits, int radix = 10) : ap_int_base()
    {
        const bool negative = *digits == '-';
        digits += negative;
        if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'b' || digits[1] == 'o')) {
            radix = digits[1] == 'x' ? 16 : digits[1] == 'b' ? 2 : 8;
            digits += 2;
        }
        for (; *digits; digits++) {
            const int digit = *digits <= '9' ? *digits - '0' : (*digits | 32) - 'a' + 10;
            *this = *this * radix + digit;
        }
        if (negative)
            *this = -*this;
    }

    // Limb number `at`, as if the number were as wide as that.
    std::uint64_t limb(int at) const { return at < LIMBS ? limb_[at] : is_negative() ? ~std::uint64_t(0) : 0; }

    bool is_negative() const { return S && (limb_[LIMBS - 1] >> 63) != 0; }
    bool sign() const { return is_negative(); }

    // Limbs as they are computed; what does not fit is cut off.
    void set_limb(int at, std::uint64_t value) { limb_[at] = value; }

    void trim()
    {
        const int used = W - 64 * (LIMBS - 1);
        if (used == 64)
            return;
        std::uint64_t &top = limb_[LIMBS - 1];
        const std::uint64_t beyond = ~std::uint64_t(0) << (used % 64);
        top = S && (top >> (used - 1) & 1) ? top | beyond : top & ~beyond;
    }

    // Conversions.
    using native = typename weft_apeiron::Native<weft_apeiron::native_bytes(W), S>::type;
    operator native() const { return static_cast<native>(limb_[0]); }
    bool to_bool() const { return *this != 0; }
    int to_int() const { return static_cast<int>(limb_[0]); }
    unsigned to_uint() const { return static_cast<unsigned>(limb_[0]); }
    long to_long() const { return static_cast<long>(limb_[0]); }
    unsigned long to_ulong() const { return limb_[0]; }
    std::int64_t to_int64() const { return static_cast<std::int64_t>(limb_[0]); }
    std::uint64_t to_uint64() const { return limb_[0]; }

    double to_double() const
    {
        const ap_int_base<W + 1, true> value(*this);
        const ap_int_base<W + 1, true> size = value.is_negative() ? ap_int_base<W + 1, true>(-value) : value;
        double sum = 0;
        for (int at = size.LIMBS; at-- > 0;)
            sum = sum * 18446744073709551616.0 + static_cast<double>(size.limb(at));
        return value.is_negative() ? -sum : sum;
    }

    std::string to_string(int radix = 10) const
    {
        ap_uint<W + 1> rest;
        rest = is_negative() ? ap_uint<W + 1>(-ap_int_base<W + 1, true>(*this)) : ap_uint<W + 1>(*this);
        std::string digits;
        do {
            digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[(rest % radix).to_uint()]);
            rest = rest / radix;
        } while (rest != 0);
        return is_negative() ? "-" + digits : digits;
    }

    // Bits.
    int length() const { return W; }
    bool test(int place) const { return limb(place / 64) >> (place % 64) & 1; }
    bool get_bit(int place) const { return test(place); }
    void set(int place) { set_bit(place, true); }
    void clear(int place) { set_bit(place, false); }
    void invert(int place) { set_bit(place, !test(place)); }

    void set_bit(int place, bool value)
    {
        if (place < 0 || place >= W)
            return;
        const std::uint64_t mask = std::uint64_t(1) << (place % 64);
        std::uint64_t &limb = limb_[place / 64];
        limb = value ? limb | mask : limb & ~mask;
        trim();
    }

    ap_bit_ref<W, S> operator[](int place) { return ap_bit_ref<W, S>(*this, place); }
    bool operator[](int place) const { return test(place); }
    ap_range_ref<W, S> range(int high, int low) { return ap_range_ref<W, S>(*this, high, low); }
    ap_range_ref<W, S> operator()(int high, int low) { return range(high, low); }
    ap_uint<W> range(int high, int low) const { return bits(high, low); }
    ap_uint<W> operator()(int high, int low) const { return bits(high, low); }
    ap_range_ref<W, S> range() { return range(W - 1, 0); }

    // The bits from `low` to `high`; the other way round where `high` is the lower.
    ap_uint<W> bits(int high, int low) const
    {
        ap_uint<W> value;
        const int count = high < low ? low - high : high - low;
        if (high >= low && low == 0 && high == W - 1)
            return ap_uint<W>(*this);
        for (int at = 0; at <= count; at++)
            value.set_bit(at, test(high < low ? low - at : low + at));
        return value;
    }

    void set_bits(int high, int low, const ap_uint<W> &value)
    {
        const int count = high < low ? low - high : high - low;
        for (int at = 0; at <= count; at++)
            set_bit(high < low ? low - at : low + at, value.test(at));
    }

    template <int W2, bool S2>
    ap_uint<W + W2> concat(const ap_int_base<W2, S2> &low) const
    {
        return (ap_uint<W + W2>(ap_uint<W>(*this)) << W2) | ap_uint<W + W2>(ap_uint<W2>(low));
    }

    bool and_reduce() const { return ap_uint<W>(~*this) == 0; }
    bool or_reduce() const { return *this != 0; }
    bool xor_reduce() const
    {
        bool odd = false;
        for (int at = 0; at < W; at++)
            odd ^= test(at);
        return odd;
    }

    // In place, as in AMD's library.
    ap_int_base &reverse() { return *this = ap_uint<W>(bits(0, W - 1)); }
    ap_int_base &lrotate(int places)
    {
        const ap_uint<W> own(*this);
        const int left = (places % W + W) % W;
        return *this = left == 0 ? own : ap_uint<W>((own << left) | (own >> (W - left)));
    }
    ap_int_base &rrotate(int places) { return lrotate(W - places % W); }

    // Operators of one number.
    ap_int_base<W + 1, true> operator-() const { return ap_int_base<1, false>() - *this; }
    ap_int_base operator+() const { return *this; }
    bool operator!() const { return *this == 0; }

    ap_int_base<W + !S, true> operator~() const
    {
        const ap_int_base<W + !S, true> wide(*this);
        ap_int_base<W + !S, true> value;
        for (int at = 0; at < value.LIMBS; at++)
            value.set_limb(at, ~wide.limb(at));
        value.trim();
        return value;
    }

    ap_int_base &operator++() { return *this = *this + 1; }
    ap_int_base &operator--() { return *this = *this - 1; }
    ap_int_base operator++(int)
    {
        const ap_int_base before = *this;
        ++*this;
        return before;
    }
    ap_int_base operator--(int)
    {
        const ap_int_base before = *this;
        --*this;
        return before;
    }

    // Shifts keep the type; by a negative count they go the other way.
    ap_int_base operator<<(int count) const
    {
        if (count < 0)
            return *this >> -count;
        ap_int_base value;
        for (int at = 0; at < LIMBS; at++) {
            const int from = at - count / 64, bits = count % 64;
            std::uint64_t limb = from >= 0 ? limb_[from] << bits : 0;
            if (bits != 0 && from >= 1)
                limb |= limb_[from - 1] >> (64 - bits);
            value.limb_[at] = limb;
        }
        value.trim();
        return value;
    }

    ap_int_base operator>>(int count) const
    {
        if (count < 0)
            return *this << -count;
        ap_int_base value;
        for (int at = 0; at < LIMBS; at++) {
            const int from = at + count / 64, bits = count % 64;
            value.limb_[at] = limb(from) >> bits;
            if (bits != 0)
                value.limb_[at] |= limb(from + 1) << (64 - bits);
        }
        value.trim();
        return value;
    }

    template <typename T>
    ap_int_base &operator<<=(const T &count)
    {
        return *this = *this << static_cast<int>(count);
    }
    template <typename T>
    ap_int_base &operator>>=(const T &count)
    {
        return *this = *this >> static_cast<int>(count);
    }
    template <typename T>
    ap_int_base &operator+=(const T &other)
    {
        return *this = ap_int_base(*this + other);
    }
    template <typename T>
    ap_int_base &operator-=(const T &other)
    {
        return *this = ap_int_base(*this - other);
    }
    template <typename T>
    ap_int_base &operator*=(const T &other)
    {
        return *this = ap_int_base(*this * other);
    }
    template <typename T>
    ap_int_base &operator/=(const T &other)
    {
        return *this = ap_int_base(*this / other);
    }
    template <typename T>
    ap_int_base &operator%=(const T &other)
    {
        return *this = ap_int_base(*this % other);
    }
    template <typename T>
    ap_int_base &operator&=(const T &other)
    {
        return *this = ap_int_base(*this & other);
    }
    template <typename T>
    ap_int_base &operator|=(const T &other)
    {
        return *this = ap_int_base(*this | other);
    }
    template <typename T>
    ap_int_base &operator^=(const T &other)
    {
        return *this = ap_int_base(*this ^ other);
    }

  private:
    std::uint64_t limb_[LIMBS];
};

namespace weft_apeiron {

// a + b, or a + ~b + 1.
template <typename R, int W1, bool S1, int W2, bool S2>
R add(const ap_int_base<W1, S1> &one, const ap_int_base<W2, S2> &other, bool subtracts)
{
    R value;
    std::uint64_t carry = subtracts;
    for (int at = 0; at < R::LIMBS; at++) {
        const std::uint64_t mask = subtracts ? ~std::uint64_t(0) : 0;
        const unsigned __int128 sum =
            static_cast<unsigned __int128>(one.limb(at)) + (other.limb(at) ^ mask) + carry;
        value.set_limb(at, static_cast<std::uint64_t>(sum));
        carry = static_cast<std::uint64_t>(sum >> 64);
    }
    value.trim();
    return value;
}

template <typename R, int W1, bool S1, int W2, bool S2>
R multiply(const ap_int_base<W1, S1> &one, const ap_int_base<W2, S2> &other)
{
    R value;
    for (int at = 0; at < R::LIMBS; at++) {
        std::uint64_t carry = 0;
        for (int by = 0; at + by < R::LIMBS; by++) {
            const unsigned __int128 sum = static_cast<unsigned __int128>(one.limb(at)) * other.limb(by) +
                                          value.limb(at + by) + carry;
            value.set_limb(at + by, static_cast<std::uint64_t>(sum));
            carry = static_cast<std::uint64_t>(sum >> 64);
        }
    }
    value.trim();
    return value;
}

// Quotient and remainder bit by bit, of sizes; signs as C has them. Dividing by 0 gives 0 and the number itself.
template <int W>
void divide(ap_uint<W> number, const ap_uint<W> &by, ap_uint<W> &quotient, ap_uint<W> &rest)
{
    quotient = 0;
    rest = 0;
    if (by == 0) {
        rest = number;
        return;
    }
    for (int at = W; at-- > 0;) {
        const bool out = rest.test(W - 1);
        rest = ap_uint<W>(rest << 1);
        rest.set_bit(0, number.test(at));
        if (out || !(rest < by)) {
            rest = ap_uint<W>(rest - by);
            quotient.set_bit(at, true);
        }
    }
}

template <int W1, bool S1, int W2, bool S2>
int compare(const ap_int_base<W1, S1> &one, const ap_int_base<W2, S2> &other)
{
    if (one.is_negative() != other.is_negative())
        return one.is_negative() ? -1 : 1;
    constexpr int LIMBS = larger(ap_int_base<W1, S1>::LIMBS, ap_int_base<W2, S2>::LIMBS);
    for (int at = LIMBS; at-- > 0;)
        if (one.limb(at) != other.limb(at))
            return one.limb(at) < other.limb(at) ? -1 : 1;
    return 0;
}

template <int W, bool S>
ap_uint<W + 1> size_of(const ap_int_base<W, S> &value)
{
    return value.is_negative() ? ap_uint<W + 1>(-value) : ap_uint<W + 1>(value);
}

}  // namespace weft_apeiron

#define WEFT_AP_OF_TWO                                                                                                 \
    template <int W1, bool S1, int W2, bool S2>
#define WEFT_AP_RESULT(kind) typename weft_apeiron::Result<W1, S1, W2, S2>::kind
#define WEFT_AP_OPERANDS const ap_int_base<W1, S1> &one, const ap_int_base<W2, S2> &other

WEFT_AP_OF_TWO WEFT_AP_RESULT(sum) operator+(WEFT_AP_OPERANDS)
{
    return weft_apeiron::add<WEFT_AP_RESULT(sum)>(one, other, false);
}
WEFT_AP_OF_TWO WEFT_AP_RESULT(difference) operator-(WEFT_AP_OPERANDS)
{
    return weft_apeiron::add<WEFT_AP_RESULT(difference)>(one, other, true);
}
WEFT_AP_OF_TWO WEFT_AP_RESULT(product) operator*(WEFT_AP_OPERANDS)
{
    return weft_apeiron::multiply<WEFT_AP_RESULT(product)>(one, other);
}
WEFT_AP_OF_TWO WEFT_AP_RESULT(quotient) operator/(WEFT_AP_OPERANDS)
{
    constexpr int W = weft_apeiron::larger(W1, W2) + 1;
    ap_uint<W> quotient, rest;
    weft_apeiron::divide<W>(weft_apeiron::size_of(one), weft_apeiron::size_of(other), quotient, rest);
    if (one.is_negative() != other.is_negative())
        return -quotient;
    return quotient;
}
WEFT_AP_OF_TWO WEFT_AP_RESULT(remainder) operator%(WEFT_AP_OPERANDS)
{
    constexpr int W = weft_apeiron::larger(W1, W2) + 1;
    ap_uint<W> quotient, rest;
    weft_apeiron::divide<W>(weft_apeiron::size_of(one), weft_apeiron::size_of(other), quotient, rest);
    if (one.is_negative())
        return -rest;
    return rest;
}

#define WEFT_AP_BITWISE(op)                                                                                            \
    WEFT_AP_OF_TWO WEFT_AP_RESULT(both) operator op(WEFT_AP_OPERANDS)                                                  \
    {                                                                                                                  \
        WEFT_AP_RESULT(both) value;                                                                                    \
        for (int at = 0; at < value.LIMBS; at++)                                                                       \
            value.set_limb(at, one.limb(at) op other.limb(at));                                                        \
        value.trim();                                                                                                  \
        return value;                                                                                                  \
    }
WEFT_AP_BITWISE(&)
WEFT_AP_BITWISE(|)
WEFT_AP_BITWISE(^)
#undef WEFT_AP_BITWISE

#define WEFT_AP_COMPARISON(op)                                                                                         \
    WEFT_AP_OF_TWO bool operator op(WEFT_AP_OPERANDS) { return weft_apeiron::compare(one, other) op 0; }
WEFT_AP_COMPARISON(==)
WEFT_AP_COMPARISON(!=)
WEFT_AP_COMPARISON(<)
WEFT_AP_COMPARISON(<=)
WEFT_AP_COMPARISON(>)
WEFT_AP_COMPARISON(>=)
#undef WEFT_AP_COMPARISON

// With built-in integers on either side.
#define WEFT_AP_MIXED(op)                                                                                              \
    template <int W, bool S, typename T, weft_apeiron::IfInteger<T> = 0>                                               \
    auto operator op(const ap_int_base<W, S> &one, T other)->decltype(one op weft_apeiron::Of<T>(other))               \
    {                                                                                                                  \
        return one op weft_apeiron::Of<T>(other);                                                                      \
    }                                                                                                                  \
    template <int W, bool S, typename T, weft_apeiron::IfInteger<T> = 0>                                               \
    auto operator op(T one, const ap_int_base<W, S> &other)->decltype(weft_apeiron::Of<T>(one) op other)               \
    {                                                                                                                  \
        return weft_apeiron::Of<T>(one) op other;                                                                      \
    }
WEFT_AP_MIXED(+)
WEFT_AP_MIXED(-)
WEFT_AP_MIXED(*)
WEFT_AP_MIXED(/)
WEFT_AP_MIXED(%)
WEFT_AP_MIXED(&)
WEFT_AP_MIXED(|)
WEFT_AP_MIXED(^)
WEFT_AP_MIXED(==)
WEFT_AP_MIXED(!=)
WEFT_AP_MIXED(<)
WEFT_AP_MIXED(<=)
WEFT_AP_MIXED(>)
WEFT_AP_MIXED(>=)
#undef WEFT_AP_MIXED

// Shifts by numbers of these types.
template <int W1, bool S1, int W2, bool S2>
ap_int_base<W1, S1> operator<<(const ap_int_base<W1, S1> &one, const ap_int_base<W2, S2> &count)
{
    return one << count.to_int();
}
template <int W1, bool S1, int W2, bool S2>
ap_int_base<W1, S1> operator>>(const ap_int_base<W1, S1> &one, const ap_int_base<W2, S2> &count)
{
    return one >> count.to_int();
}

// `(high, low)`: bits side by side.
template <int W1, bool S1, int W2, bool S2>
ap_uint<W1 + W2> operator,(const ap_int_base<W1, S1> &high, const ap_int_base<W2, S2> &low)
{
    return high.concat(low);
}

template <int W, bool S>
std::ostream &operator<<(std::ostream &out, const ap_int_base<W, S> &value)
{
    return out << value.to_string();
}

#undef WEFT_AP_OF_TWO
#undef WEFT_AP_RESULT
#undef WEFT_AP_OPERANDS

#define WEFT_AP_TYPE(name, S)                                                                                          \
    template <int W>                                                                                                   \
    class name : public ap_int_base<W, S> {                                                                            \
      public:                                                                                                          \
        name() = default;                                                                                              \
        template <typename T, weft_apeiron::IfNumber<T> = 0>                                                           \
        name(const T &value) : ap_int_base<W, S>(value)                                                                \
        {                                                                                                              \
        }                                                                                                              \
        name(const char *digits, int radix = 10) : ap_int_base<W, S>(digits, radix) {}                                 \
        template <typename T, weft_apeiron::IfNumber<T> = 0>                                                           \
        name &operator=(const T &value)                                                                                \
        {                                                                                                              \
            ap_int_base<W, S>::operator=(ap_int_base<W, S>(value));                                                    \
            return *this;                                                                                              \
        }                                                                                                              \
    };
WEFT_AP_TYPE(ap_int, true)
WEFT_AP_TYPE(ap_uint, false)
#undef WEFT_AP_TYPE

#endif
