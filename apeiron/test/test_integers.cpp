// ap_int and ap_uint beside what C++ computes.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "ap_int.h"
#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

namespace {

// Catches results that differ from the compiler's own 128-bit integers, of either sign.
void test_arithmetic()
{
    std::uint64_t state = 1;
    const auto next = [&state] { return state = state * 6364136223846793005u + 1442695040888963407u; };
    const auto same = [](const ap_int<128> &value, __int128 expected) {
        return value.limb(0) == static_cast<std::uint64_t>(expected) &&
               value.limb(1) == static_cast<std::uint64_t>(expected >> 64);
    };
    for (int round = 0; round < 20000; round++) {
        const std::int64_t one = static_cast<std::int64_t>(next()) >> (next() % 64);
        const std::int64_t other = static_cast<std::int64_t>(next()) >> (next() % 64);
        const ap_int<64> a = one, b = other;
        CHECK(same(a + b, static_cast<__int128>(one) + other));
        CHECK(same(a - b, static_cast<__int128>(one) - other));
        CHECK(same(a * b, static_cast<__int128>(one) * other));
        if (other != 0) {
            CHECK(same(a / b, static_cast<__int128>(one) / other));
            CHECK(same(a % b, static_cast<__int128>(one) % other));
        }
        CHECK(same(a & b, one & other) && same(a | b, one | other) && same(a ^ b, one ^ other) && same(~a, ~one));
        CHECK((a < b) == (one < other) && (a == b) == (one == other) && (a >= b) == (one >= other));
        const int count = static_cast<int>(next() % 64);
        CHECK(same(a >> count, one >> count));
        CHECK(same(ap_int<128>(a) << count, static_cast<__int128>(static_cast<unsigned __int128>(one) << count)));
        const ap_uint<64> c = static_cast<std::uint64_t>(one);
        CHECK((c < b) == (static_cast<__int128>(static_cast<std::uint64_t>(one)) < other));
        CHECK(same(c - b, static_cast<__int128>(static_cast<std::uint64_t>(one)) - other));
    }
}

// Catches widths that are not kept, and bits at other places than they were put.
void test_bits()
{
    ap_uint<4> nibble = 15;
    nibble += 1;
    CHECK(nibble == 0);
    nibble--;
    CHECK(nibble == 15 && nibble + 1 == 16);
    ap_int<4> small = 7;
    small++;
    CHECK(small == -8 && -small == 8);
    ap_uint<128> word = 12;
    word.range(127, 64) = 3;
    const ap_uint<64> high = word.range(127, 64);
    CHECK(high == 3 && word(63, 0) == 12 && (word >> 64) == 3);
    ap_uint<8> byte = (ap_uint<4>(0xa), ap_uint<4>(0x5));
    CHECK(byte == 0xa5 && byte(7, 4) == 0xa);
    ap_uint<12> turned = 0x123;
    turned.lrotate(4);
    CHECK(turned == 0x231);
    turned.rrotate(8);
    CHECK(turned == 0x312);
    turned.reverse();
    CHECK(turned == 0x48c);
    ap_int<4> odd = -5;
    odd.rrotate(1);
    CHECK(odd == -3);
    byte[1] = byte[2];
    CHECK(byte == 0xa7 && byte[0] && !byte[3] && ap_uint<8>(~ap_uint<8>(1)) == 0xfe);
    const int places[20] = {};
    CHECK(places[nibble] == 0);
}

// Catches numbers that are read or written otherwise, beyond 64 bits too.
void test_text()
{
    const ap_uint<256> large("123456789012345678901234567890");
    CHECK(large.to_string() == "123456789012345678901234567890");
    CHECK(large.to_string(16) == "18ee90ff6c373e0ee4e3f0ad2" && ap_uint<256>("0x18ee90ff6c373e0ee4e3f0ad2") == large);
    CHECK(large / 10 * 10 + large % 10 == large && (large << 100) >> 100 == large);
    CHECK(ap_int<128>(-1).to_string() == "-1" && ap_int<9>("-77") == -77 && ap_int<100>(-5).to_double() == -5.0);
}

}  // namespace

int main()
{
    test_arithmetic();
    test_bits();
    test_text();
    std::puts("integers: all right");
    return 0;
}
