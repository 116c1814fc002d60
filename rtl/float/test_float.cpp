// The floating-point units against the machine's own arithmetic, bit for bit: pairs of numbers, many of them corner
// cases. Usage: test_float PAIRS SEED. WIDTH is 32 or 64, and Vfloat is verilated for it.
//
// Catches a sum that is rounded otherwise, a subnormal number that is taken for zero, another NaN than the canonical
// one, an infinity too early, and a minimum or maximum that takes the wrong one of two operands.

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "Vfloat.h"
#include "verilated.h"

#if WIDTH == 32
using Number = float;
using Bits = uint32_t;
constexpr int MAN = 23, EXP = 8;
#else
using Number = double;
using Bits = uint64_t;
constexpr int MAN = 52, EXP = 11;
#endif

constexpr int STAGES = 5;
constexpr Bits ONE = 1;
constexpr Bits MOST = (ONE << EXP) - 1, SIGN = ONE << (EXP + MAN), FRACTION = (ONE << MAN) - 1;
constexpr Bits NO_NUMBER = MOST << MAN | ONE << (MAN - 1);

enum Operation { SUM, MIN, MAX };

// xorshift64*.
struct Random {
    uint64_t state;
    uint64_t next() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return state * 0x2545F4914F6CDD1Du;
    }
    uint64_t below(uint64_t limit) { return (next() >> 16) % limit; }
};

// A fraction: any, few bits, all ones but few, one bit.
Bits fraction(Random &random) {
    switch (random.below(6)) {
        case 0: return random.next() & random.next() & random.next() & FRACTION;
        case 1: return ~(random.next() & random.next() & random.next()) & FRACTION;
        case 2: return ONE << random.below(MAN);
        case 3: return (FRACTION << random.below(MAN)) & FRACTION;
        default: return random.next() & FRACTION;
    }
}

// A number: any, around 1, at the limits of exponents, subnormal, zero, infinite, NaN.
Bits number(Random &random) {
    Bits sign = random.next() & SIGN;
    switch (random.below(16)) {
        case 0: return sign;
        case 1: return sign | MOST << MAN;
        case 2: return sign | MOST << MAN | fraction(random) | random.below(2);
        case 3:
        case 4: return sign | fraction(random);
        case 5: return sign | (MOST - 1 - random.below(3)) << MAN | fraction(random);
        case 6: return sign | (1 + random.below(3)) << MAN | fraction(random);
        case 7: return random.next() & (SIGN | (SIGN - 1));
        default: return sign | (MOST / 2 + random.below(2 * MAN) - MAN) << MAN | fraction(random);
    }
}

// The other number: any, near in exponent, a near one of the other sign, a tie, the same.
Bits partner(Random &random, Bits of) {
    Bits exponent = of >> MAN & MOST, sign = random.next() & SIGN;
    switch (random.below(8)) {
        case 0: return of ^ SIGN;
        case 1: return of;
        case 2: return (of ^ SIGN) + random.below(9) - 4;
        case 3: return sign | exponent << MAN | fraction(random);
        case 4: return sign | ((exponent + random.below(5) - 2) & MOST) << MAN | fraction(random);
        // Half of the last place, a little more or less.
        case 5: return sign | ((exponent - MAN - random.below(3)) & MOST) << MAN | (random.below(2) ? 0 : random.below(2));
        case 6: return sign | ((exponent - random.below(MAN + 6)) & MOST) << MAN | fraction(random);
        default: return number(random);
    }
}

template <typename To, typename From> To as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// The machine's own.
Bits expected(int operation, Bits lower, Bits upper) {
    Number a = as<Number>(lower), b = as<Number>(upper);
    if (operation == MIN) return b < a ? upper : lower;
    if (operation == MAX) return b > a ? upper : lower;
    volatile Number sum = a + b;
    return std::isnan(sum) ? NO_NUMBER : as<Bits>(Number(sum));
}

int main(int, char **arguments) {
    uint64_t pairs = std::strtoull(arguments[1], nullptr, 10);
    Random random{std::strtoull(arguments[2], nullptr, 10) * 0x9E3779B97F4A7C15u + 1};
    VerilatedContext context;
    Vfloat unit{&context};
    struct { int operation; Bits lower, upper; } on_its_way[STAGES] = {};
    // What the pairs were, so that a generator that misses a case is seen.
    enum { TIE, CANCELLED, SUBNORMAL, INFINITE, NO_NUMBERS, EXACT_ZERO, SWALLOWED, CASES };
    const char *names[] = {"ties", "cancelled", "subnormal", "infinite", "no number", "zero", "swallowed"};
    uint64_t cases[CASES] = {};
    for (uint64_t cycle = 0; cycle < pairs + STAGES; cycle++) {
        auto &slot = on_its_way[cycle % STAGES];
        if (cycle >= STAGES) {
            Bits found = unit.result, wanted = expected(slot.operation, slot.lower, slot.upper);
            if (found != wanted) {
                std::printf("pair %" PRIu64 ", %s of %#" PRIx64 " and %#" PRIx64 ": %#" PRIx64 ", not %#" PRIx64 "\n",
                            cycle - STAGES, (const char *[]){"sum", "min", "max"}[slot.operation],
                            uint64_t{slot.lower}, uint64_t{slot.upper}, uint64_t{found}, uint64_t{wanted});
                return 1;
            }
            if (slot.operation == SUM) {
                Bits large = slot.lower & (SIGN - 1), small = slot.upper & (SIGN - 1);
                if (large < small) std::swap(large, small);
                Bits place = large >> MAN, size = wanted & (SIGN - 1);
                cases[TIE] += place - (small >> MAN) == MAN + 1 && !(small & FRACTION) && small >> MAN;
                cases[CANCELLED] += size >> MAN && (size >> MAN) + 2 < place && place < MOST;
                cases[SUBNORMAL] += size && !(size >> MAN);
                cases[INFINITE] += size == MOST << MAN;
                cases[NO_NUMBERS] += size > MOST << MAN;
                cases[EXACT_ZERO] += !size && large;
                cases[SWALLOWED] += size == large && small && place < MOST;
            }
        }
        slot.lower = number(random);
        slot.upper = partner(random, slot.lower);
        if (random.next() >> 63) std::swap(slot.lower, slot.upper);
        slot.operation = random.below(4) < 2 ? SUM : 1 + random.below(2);
        unit.operation = slot.operation;
        unit.lower = slot.lower;
        unit.upper = slot.upper;
        unit.clk = 0;
        unit.eval();
        unit.clk = 1;
        unit.eval();
    }
    std::printf("float of %d bits: %" PRIu64 " pairs;", WIDTH, pairs);
    int empty = 0;
    for (int i = 0; i < CASES; i++) {
        std::printf(" %s: %" PRIu64, names[i], cases[i]);
        empty += cases[i] == 0;
    }
    std::printf("%s\n", empty ? "; a case is missing" : "");
    return empty != 0;
}
