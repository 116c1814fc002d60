// The C interface of libweft_rtl.so: the blocks under Verilator, for whoever loads it. crates/weft-rtl/src/library.rs is
// the other side.
//
// A block's ports lie in an array of 64-bit words, each port from a word of its own on. A caller writes the inputs of a
// cycle and calls weft_rtl_cycle: the outputs are then those of this cycle, and the clock's edge that ends it has passed.

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "verilated.h"

extern "C" {
struct WeftRtlPort {
    const char *name;
    uint32_t bits;
    uint32_t is_output;
    uint32_t word;
    uint32_t reserved;
};
struct WeftRtlParameter {
    const char *name;
    int64_t value;
};
}

namespace {

struct Instance {
    std::vector<uint64_t> words;
    virtual ~Instance() = default;
    virtual void cycle() = 0;
    virtual void save() = 0;
    virtual void restore() = 0;
};

// A block that can be put back to a state. All of that is plain data in Root, which library.py checks; pointers in it
// stay the same for as long as the block lives.
template <typename Model, typename Root> struct Block : Instance {
    VerilatedContext context;
    Model model{&context};
    std::vector<uint8_t> saved = std::vector<uint8_t>(sizeof(Root));
    std::vector<uint64_t> saved_words;
    ~Block() override { model.final(); }
    void save() override {
        std::memcpy(saved.data(), static_cast<const void *>(model.rootp), sizeof(Root));
        saved_words = words;
    }
    void restore() override {
        std::memcpy(static_cast<void *>(model.rootp), saved.data(), sizeof(Root));
        words = saved_words;
    }
};

struct Kind {
    const char *name;
    const WeftRtlPort *ports;
    uint32_t port_count;
    const WeftRtlParameter *parameters;
    uint32_t parameter_count;
    Instance *(*create)();
};

// A port of up to 64 bits, and a wider one, which Verilator has in words of 32 bits.
template <typename T> void put(T &port, const uint64_t *word) { port = static_cast<T>(*word); }
template <std::size_t N> void put(VlWide<N> &port, const uint64_t *word) {
    for (std::size_t i = 0; i < N; i++) port[i] = static_cast<uint32_t>(word[i / 2] >> (i % 2 * 32));
}
template <typename T> void get(const T &port, uint64_t *word) { *word = port; }
template <std::size_t N> void get(const VlWide<N> &port, uint64_t *word) {
    for (std::size_t i = 0; i < N; i += 2) word[i / 2] = port[i] | (i + 1 < N ? uint64_t{port[i + 1]} << 32 : 0);
}

#include "blocks.inc"

const Kind *kind_of(uint32_t block) { return block < sizeof KINDS / sizeof *KINDS ? &KINDS[block] : nullptr; }

}  // namespace

extern "C" {

// The version of this interface.
uint32_t weft_rtl_version() { return 2; }

// A hash of the sources of all blocks, in hexadecimal.
const char *weft_rtl_sources() { return SOURCES; }

// The name of a block; null behind the last.
const char *weft_rtl_block(uint32_t block) {
    const Kind *kind = kind_of(block);
    return kind ? kind->name : nullptr;
}

const WeftRtlPort *weft_rtl_ports(uint32_t block, uint32_t *count) {
    *count = KINDS[block].port_count;
    return KINDS[block].ports;
}

const WeftRtlParameter *weft_rtl_parameters(uint32_t block, uint32_t *count) {
    *count = KINDS[block].parameter_count;
    return KINDS[block].parameters;
}

void *weft_rtl_create(uint32_t block) { return KINDS[block].create(); }
void weft_rtl_destroy(void *instance) { delete static_cast<Instance *>(instance); }
uint64_t *weft_rtl_words(void *instance) { return static_cast<Instance *>(instance)->words.data(); }
void weft_rtl_cycle(void *instance) { static_cast<Instance *>(instance)->cycle(); }
// Keeps the state of a block, one at a time; puts it back to that.
void weft_rtl_save(void *instance) { static_cast<Instance *>(instance)->save(); }
void weft_rtl_restore(void *instance) { static_cast<Instance *>(instance)->restore(); }
}
