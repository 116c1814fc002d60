// Kernels in virtual time, on a network that is only a delay: without weft.
//
//   g++ -std=c++14 -Wall -Wextra -Iapeiron/include apeiron/test/test_kernels.cpp -o build/test_kernels
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "weft_apeiron/scheduler.h"
#include <cstdlib>
#include <deque>
#include <sys/wait.h>

using namespace weft_apeiron;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

namespace {

// An IP of 100 MHz in which a packet takes `LATENCY` cycles to any port of the same node, and a port a cycle per word.
// The receiving FIFOs of a port hold so many packets; others wait before them.
class Loop : public Network {
  public:
    static constexpr Picoseconds CYCLE = 10000;
    static constexpr Cycle LATENCY = 40, ENVELOPE = 8;

    unsigned node() const override { return 0; }
    Picoseconds now() override { return now_; }
    void pass_until(Picoseconds then) override { now_ = std::max(now_, then); }

    bool wait_until(Picoseconds then) override
    {
        Picoseconds first = NEVER;
        for (const Packet &packet : flying_)
            if (has_room(packet))
                first = std::min(first, packet.at);
        for (const auto &sent : sent_)
            first = std::min(first, sent.second);
        if (first > then || first == NEVER) {
            // As weft does, it ends what stands still.
            if (then == NEVER && ++standstills_ > 2)
                std::_Exit(1);
            now_ = then == NEVER ? now_ : then;
            return false;
        }
        pass_until(first);
        return true;
    }

    void send(const Packet &packet) override
    {
        Picoseconds &free = free_[packet.port];
        const Picoseconds words = CYCLE * (ENVELOPE + words_of(packet.payload.size()));
        free = std::max(free, now_) + words;
        sent_.emplace_back(packet.port, free);
        Packet flying = packet;
        flying.at = free + CYCLE * LATENCY;
        flying.port = packet.header.s.intra_dest;
        flying.from_port = packet.port;
        flying_.push_back(flying);
    }

    bool take(Packet &packet) override
    {
        const auto due = std::find_if(flying_.begin(), flying_.end(),
                                      [&](const Packet &own) { return own.at <= now_ && has_room(own); });
        if (due == flying_.end())
            return false;
        packet = *due;
        flying_.erase(due);
        held_[packet.port]++;
        return true;
    }

    void free(unsigned port) override
    {
        held_[port]--;
        freed.push_back(now_ / CYCLE);
        for (Packet &packet : flying_)
            if (packet.port == port)
                packet.at = std::max(packet.at, now_);
    }

    bool take_sent(unsigned &port, Picoseconds &at) override
    {
        const auto due = std::find_if(sent_.begin(), sent_.end(),
                                      [&](const std::pair<unsigned, Picoseconds> &own) { return own.second <= now_; });
        if (due == sent_.end())
            return false;
        port = due->first;
        at = due->second;
        sent_.erase(due);
        return true;
    }

    std::uint32_t read_register(std::uint32_t) override { return 0; }
    void write_register(std::uint32_t, std::uint32_t) override {}

    unsigned receive_fifo = 100;
    // The cycles in which packets have left the receiving FIFOs.
    std::vector<Cycle> freed;

  private:
    bool has_room(const Packet &packet) { return held_[packet.port] < receive_fifo; }

    Picoseconds now_ = 0;
    unsigned standstills_ = 0;
    std::map<unsigned, unsigned> held_;
    std::deque<Packet> flying_;
    std::deque<std::pair<unsigned, Picoseconds>> sent_;
    std::map<unsigned, Picoseconds> free_;
};

// A node with kernels of four channels each, at ports 0, 1, ...
struct Node {
    static constexpr std::size_t PAYLOAD = 4096;

    explicit Node(unsigned kernels, Cycle cycles = 1, bool has_headers = false, std::size_t depth = PAYLOAD / 16)
        : scheduler(loop, Clock(100), DdrCosts{30}, PAYLOAD)
    {
        for (unsigned at = 0; at < kernels; at++) {
            KernelDesign kernel;
            kernel.name = "krnl_" + std::to_string(at);
            kernel.port = at;
            kernel.inputs = kernel.outputs = 4;
            kernel.cycles = cycles;
            kernel.depth = depth;
            designs.push_back(kernel);
            ports.push_back(&scheduler.add(kernel, has_headers, PAYLOAD));
        }
    }

    std::shared_ptr<Task> start(unsigned kernel, std::function<void(Channels)> body)
    {
        const Channels channels = ports[kernel]->channels();
        return scheduler.start(designs[kernel], [=] { body(channels); });
    }

    Loop loop;
    Scheduler scheduler;
    std::vector<KernelDesign> designs;
    std::vector<Port *> ports;
};

// Catches a kernel that pays for words of different streams in turn, or for none; and ports that add cycles.
void test_round_trips()
{
    Node node(1);
    constexpr unsigned TIMES = 10;
    const auto task = node.start(0, [](Channels io) {
        unsigned char sent[16], got[16];
        for (unsigned at = 0; at < TIMES; at++) {
            std::memset(sent, static_cast<int>(at), sizeof sent);
            send(sent, sizeof sent, 0, 0, 1, io.data_out);
            CHECK(receive(1, got, io.data_in) == sizeof got);
            CHECK(std::memcmp(sent, got, sizeof got) == 0);
        }
    });
    node.scheduler.run(*task);
    // Each: a cycle until the word is there, then the way.
    const Cycle each = 1 + Loop::ENVELOPE + 1 + Loop::LATENCY;
    CHECK(node.scheduler.now() == Loop::CYCLE * (TIMES * each + 1));
}

// Catches long messages that lose or mix bytes, or whose end is not told, between two kernels of different pace; and a
// sender that runs ahead of its port without end.
void test_long_messages()
{
    Node node(2);
    const std::size_t sizes[] = {0, 1, 15, 16, 17, 4096, 4097, 20000};
    const auto sender = node.start(0, [&](Channels) {
        for (const std::size_t size : sizes) {
            std::vector<unsigned char> bytes(size + 1);
            for (std::size_t at = 0; at < size; at++)
                bytes[at] = static_cast<unsigned char>(at * 7 + size);
            CHECK(send(bytes.data(), size, 0, 1, 3) == size);
        }
    });
    const auto receiver = node.start(1, [&](Channels) {
        for (const std::size_t size : sizes) {
            CHECK(receive(3) == size);
            const unsigned char *bytes = static_cast<const unsigned char *>(received(3));
            for (std::size_t at = 0; at < size; at++)
                CHECK(bytes[at] == static_cast<unsigned char>(at * 7 + size));
        }
    });
    node.scheduler.run(*receiver);
    CHECK(sender->is_over());
}

// Catches a port that takes packets faster than it can write them, or waits for more than it must.
void test_rate()
{
    Node node(2);
    constexpr unsigned TIMES = 20;
    node.start(0, [](Channels io) {
        static unsigned char bytes[2048];
        for (unsigned at = 0; at < TIMES; at++)
            send(bytes, sizeof bytes, 0, 1, 0, io.data_out);
    });
    const auto receiver = node.start(1, [](Channels io) {
        static unsigned char bytes[2048];
        for (unsigned at = 0; at < TIMES; at++)
            receive(0u, bytes, io.data_in);
    });
    node.scheduler.run(*receiver);
    CHECK(node.scheduler.now() == Loop::CYCLE * (1 + TIMES * (128 + Loop::ENVELOPE) + Loop::LATENCY + 1));
    // Until the first packet has come, and between packets.
    const Cycle waited = receiver->waited.at({Access::Read, "message_data_in[0]"});
    CHECK(waited == 1 + Loop::ENVELOPE + Loop::LATENCY + 1 + (TIMES - 1) * Loop::ENVELOPE);
}

// Catches a channel that takes words without a place, one that is late with a place, and a packet that leaves the
// receiving FIFOs before its last word has a place in its channel: all by hand.
void test_full_channels()
{
    for (const unsigned receive_fifo : {1, 100}) {
        Node node(2, 1, false, 6);
        node.loop.receive_fifo = receive_fifo;
        node.start(0, [](Channels io) {
            static unsigned char bytes[64];
            for (unsigned char packet = 0; packet < 5; packet++) {
                std::memset(bytes, packet, sizeof bytes);
                send(bytes, sizeof bytes, 0, 1, 0, io.data_out);
            }
        });
        const auto receiver = node.start(1, [](Channels io) {
            static unsigned char bytes[64];
            for (unsigned char packet = 0; packet < 5; packet++) {
                CHECK(receive(0u, bytes, io.data_in) == sizeof bytes);
                CHECK(bytes[0] == packet && bytes[63] == packet);
                apeiron_compute(100);
            }
        });
        node.scheduler.run(*receiver);
        // Packets of 4 words come every 12 cycles, the first in cycles 50 to 53, and are read every 104. The second and
        // half of the third find places at once; of each other half one does, and the rest follows when the packet
        // before that is read: a cycle later there is a place, and another later the word is there.
        CHECK((node.loop.freed == std::vector<Cycle>{53, 65, 157, 261, 365}));
        CHECK(node.ports[1]->dispatcher().held(0, node.loop.now() / Loop::CYCLE) == (156 - 76) + 2 * (260 - 162));
        CHECK(node.scheduler.now() == Loop::CYCLE * (50 + 4 * 104 + 4 + 100));
    }
}

// Catches a word that is there in the cycle in which its place is free: with one place, each second cycle has none.
void test_a_channel_of_one_word()
{
    Node node(2, 1, false, 1);
    node.start(0, [](Channels) {
        static unsigned char bytes[64];
        send(bytes, sizeof bytes, 0, 1, 0);
    });
    node.scheduler.run(*node.start(1, [](Channels) { receive(0u); }));
    CHECK((node.loop.freed == std::vector<Cycle>{50 + 2 * 3}));
}

// Catches a kernel that hears late of packets that it makes room for while it computes, or has room that is only there
// when it reads.
void test_channels_fill_behind_a_kernel_that_computes()
{
    Node node(2, 1, false, 8);
    const auto sender = node.start(0, [](Channels) {
        static unsigned char bytes[64];
        for (unsigned packet = 0; packet < 3; packet++)
            send(bytes, sizeof bytes, 0, 1, 0);
    });
    const auto receiver = node.start(1, [](Channels) {
        apeiron_compute(500);
        for (unsigned packet = 0; packet < 3; packet++)
            receive(0u);
    });
    node.scheduler.run(*sender);
    node.scheduler.run(*receiver);
    // Two packets go into the channel as they come, the third follows its first words, which are read from 500 on.
    CHECK((node.loop.freed == std::vector<Cycle>{53, 65, 505}));
}

// Catches headers that the kernel writes and that do not arrive as they were.
void test_headers()
{
    Node node(2, 1, true);
    node.start(0, [](Channels io) {
        apenet_header_t header = {};
        header.s.intra_dest = 1;
        header.s.proc_id = 2;
        header.s.packet_size = 40;
        io.header_out[0].write(header);
        for (unsigned word = 0; word < 3; word++)
            io.data_out[0].write(uint128_t(word + 5));
        io.header_out[0].write(apenet_header_t());
    });
    const auto receiver = node.start(1, [](Channels io) {
        const apenet_header_t header = io.header_in[2].read();
        CHECK(header.s.packet_size == 40 && header.s.intra_dest == 1 && edac_of(header) == 0);
        for (unsigned word = 0; word < 3; word++) {
            const uint128_t data = io.data_in[2].read();
            CHECK(data == word + 5);
        }
        CHECK(io.header_in[2].read().l[1] == 3);
    });
    node.scheduler.run(*receiver);
}

// Catches a stream that takes more words than it has places, gives one before it was written or in its own cycle, and
// calls that wait although they must not.
void test_streams()
{
    Node node(2);
    hls::stream<int, 4> stream("between");
    CHECK(stream.capacity() == 4);
    const auto writer = node.start(0, [&](Channels) {
        CHECK(stream.empty());
        const Cycle began = executor()->clock();
        for (int word = 0; word < 8; word++)
            stream << word;
        // The fifth place is free when the first word has been read.
        CHECK(executor()->clock() - began == 103);
        hls::stream<int, 2> own;
        CHECK(!own.full() && own.write_nb(1) && own.write_nb(2));
        CHECK(own.full() && own.size() == 2 && !own.write_nb(3));
        // Its place is free in the next cycle.
        CHECK(own.read() == 1 && own.full() && !own.full());
    });
    const auto reader = node.start(1, [&](Channels) {
        int word = -1;
        CHECK(!stream.read_nb(word));
        executor()->advance(100);
        for (int expected = 0; expected < 8; expected++) {
            stream >> word;
            CHECK(word == expected);
        }
        CHECK(executor()->clock() == 107);
    });
    node.scheduler.run(*writer);
    node.scheduler.run(*reader);
}

// Catches the initiation interval of a kernel or a loop that does not count.
void test_intervals()
{
    Node node(1, 3);
    hls::stream<int, 64> stream;
    const auto task = node.start(0, [&](Channels) {
        for (int word = 0; word < 5; word++)
            stream.write(word);
        CHECK(executor()->clock() == 12);
        Cycle next = 0;
        for (int word = 0; word < 5; word++) {
            begin_iteration(10, next);
            stream.write(word);
        }
        CHECK(executor()->clock() == 52);
    });
    node.scheduler.run(*task);
}

// Catches cycles of computing that lie in the cycle of an access, or count twice.
void test_computing()
{
    Node node(1);
    hls::stream<int, 64> in, out;
    const auto task = node.start(0, [&](Channels) {
        apeiron_compute(7);
        CHECK(executor()->clock() == 7);
        for (int word = 0; word < 10; word++) {
            in.write(word);
            in.read();
            out.write(word);
            apeiron_compute(1);
            apeiron_compute(0);
            apeiron_compute(2);
        }
    });
    node.scheduler.run(*task);
    // A word is read in the cycle behind that in which it is written, and three follow.
    CHECK(node.scheduler.now() == Loop::CYCLE * (7 + 10 * (2 + 3)));
}

// Catches words of messages that are other than numbers of 128 bits, and streams of them that a function cannot take.
void test_words_are_numbers()
{
    Node node(1);
    const auto task = node.start(0, [](Channels io) {
        send("0123456789abcde", 16, 0, 0, 0);
        // As appendix B types a channel.
        const auto take = [](hls::stream<uint128_t> &words) { return words.read(); };
        const ap_uint<8> first = take(io.data_in[0]).range(7, 0);
        CHECK(first == '0');
        hls::stream<uint128_t> own;
        own.write(ap_uint<64>(5));
        own << 6;
        const ap_uint<32> five = own.read();
        CHECK(five == 5 && own.read() + 1 == 7);
    });
    node.scheduler.run(*task);
}

// Catches buffers in DDR that cost nothing, and kernels that use its channel at the same time.
void test_ddr()
{
    Node node(2);
    static unsigned char first[64], second[64];
    node.scheduler.add_ddr(first, sizeof first);
    node.scheduler.add_ddr(second, sizeof second);
    Cycle ends[2];
    const auto body = [&](unsigned kernel, void *bytes) {
        return [=, &ends](Channels io) {
            send(bytes, 64, 0, kernel, 0, io.data_out);
            ends[kernel] = executor()->clock();
        };
    };
    const auto one = node.start(0, body(0, first)), other = node.start(1, body(1, second));
    node.scheduler.run(*one);
    node.scheduler.run(*other);
    CHECK(ends[0] == 30 + 3);
    CHECK(ends[1] == 30 + 4 + 30 + 3);
}

// The lines that a node prints as it ends with an error.
std::string error_of(std::function<void()> body)
{
    int pipe_of[2];
    CHECK(pipe(pipe_of) == 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_of[1], STDERR_FILENO);
        close(pipe_of[0]);
        body();
        _exit(0);
    }
    close(pipe_of[1]);
    std::string text;
    char bytes[256];
    for (ssize_t count; (count = read(pipe_of[0], bytes, sizeof bytes)) > 0;)
        text.append(bytes, static_cast<std::size_t>(count));
    close(pipe_of[0]);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    return text;
}

std::string error_of_kernel(std::function<void(Channels)> body)
{
    return error_of([=] {
        Node node(1);
        node.scheduler.run(*node.start(0, body));
    });
}

bool has(const std::string &text, const std::string &part)
{
    if (text.find(part) != std::string::npos)
        return true;
    std::fprintf(stderr, "%s\n", text.c_str());
    return false;
}

// Catches a message that is put together of packets of two, and one that is said to be although only packets alternate.
void test_two_senders()
{
    const auto senders_of = [](std::size_t size) {
        return error_of([=] {
            Node node(3);
            static unsigned char bytes[2][5000];
            for (unsigned kernel = 0; kernel < 2; kernel++)
                node.start(kernel, [=](Channels) {
                    for (unsigned message = 0; message < 3; message++)
                        send(bytes[kernel], size, 0, 2, 1, channel(Access::Write, 0));
                });
            node.scheduler.run(*node.start(2, [=](Channels) {
                for (unsigned message = 0; message < 6; message++)
                    CHECK(receive(1) == size);
                executor()->refuse("has all messages");
            }));
        });
    };
    CHECK(has(senders_of(4096), "kernel krnl_2 has all messages"));
    const std::string mixed = senders_of(4097);
    CHECK(has(mixed, "kernel krnl_2 receives from message_data_in[1] a message of several packets from task 0 of node "
                     "0, and amid it a packet from task 1 of node 0: give each sender a channel of its own"));
}

// Catches packets of kernels with headers that are cut, or never leave, and nobody says why.
void test_mistakes_of_senders()
{
    const auto error = [](unsigned words, bool has_footer, std::function<void(Channels)> then) {
        return error_of([=] {
            Node node(1, 1, true);
            node.scheduler.run(*node.start(0, [=](Channels io) {
                apenet_header_t header = {};
                header.s.packet_size = 32;
                io.header_out[0].write(header);
                for (unsigned word = 0; word < words; word++)
                    io.data_out[0].write(word);
                if (has_footer)
                    io.header_out[0].write(header);
                then(io);
            }));
        });
    };
    const auto reads = [](Channels io) { io.header_in[0].read(); };
    CHECK(has(error(1, true, reads), "there is a packet in message_data_out[0] that lacks 1 word, with a packet_size "
                                     "of 32, of kernel krnl_0"));
    CHECK(has(error(2, false, reads), "a packet in message_data_out[0] that lacks its footer"));
    CHECK(has(error(1, true, [](Channels io) { io.header_out[0].write(apenet_header_t()); }),
              "writes another header to message_hdr_out[0], and the packet before it lacks 1 word"));
    CHECK(has(error(5, true, reads), "with a packet_size of 32, and 3 words too many before its footer"));
    CHECK(has(error(2, true, [](Channels io) {
                  io.header_in[0].read();
                  io.data_out[0].write(1);
                  io.header_in[0].read();
                  io.header_in[0].read();
              }),
              "there is 1 word without a header in message_data_out[0] of kernel krnl_0"));
    CHECK(has(error(2, true, [](Channels) { send("x", 1, 0, 0, 0); }),
              "sends by message_data_out[0], and its prototype has header streams"));
}

// Catches mistakes of kernels that corrupt memory, hang or name nobody.
void test_mistakes()
{
    CHECK(has(error_of_kernel([](Channels io) { io.data_out[4].write(uint128_t(1)); }),
              "kernel krnl_0 writes message_data_out[4], and it has 4 output channels in config.yaml"));
    CHECK(has(error_of_kernel([](Channels) { receive(9); }), "reads message_data_in[4]"));
    CHECK(has(error_of_kernel([](Channels io) { io.data_out[0].write(uint128_t(1)); }), "says nowhere where it goes"));
    CHECK(has(error_of_kernel([](Channels) { send("x", 1, 0, 16, 0); }), "`intra_dest` has 4 bits"));
    CHECK(has(error_of_kernel([](Channels) {
                  volatile int *nowhere = nullptr;
                  *nowhere = 1;
              }),
              "kernel krnl_0 uses memory that it does not have"));
    CHECK(has(error_of_kernel([](Channels) { throw std::runtime_error("no more"); }), "kernel krnl_0 throws: no more"));
    CHECK(has(error_of_kernel([](Channels) {
                  hls::stream<int> local("local");
                  for (int word = 0; word < 3; word++)
                      local.write(word);
              }),
              "kernel krnl_0 writes local, which is full"));
    CHECK(has(error_of_kernel([](Channels io) {
                  send("x", 1, 0, 0, 4);
                  (void)io;
              }),
              "writes message_data_out[4]"));
    CHECK(has(error_of_kernel([](Channels io) { io.data_out[-1].write(uint128_t(1)); }),
              "node 0: kernel krnl_0 writes message_data_out[-1], and its 4 output channels count from 0"));
    CHECK(has(error_of_kernel([](Channels io) { io.data_in[1].write(1); }),
              "writes message_data_in[1], an input channel: the prototype has"));
    CHECK(has(error_of_kernel([](Channels io) { io.data_out[1].read(); }), "reads message_data_out[1], an output"));
    CHECK(has(error_of_kernel([](Channels) { throw 5; }), "kernel krnl_0 throws what is no std::exception"));
    CHECK(has(error_of_kernel([](Channels) { std::abort(); }), "node 0: kernel krnl_0 aborts: by abort"));
    CHECK(has(error_of_kernel([](Channels) {
                  volatile char large[2 << 20];
                  for (std::size_t at = 0; at < sizeof large; at++)
                      large[at] = 1;
              }),
              "kernel krnl_0 uses more stack than the 1 MiB"));
    CHECK(has(error_of_kernel([](Channels) {
                  // As far as what lies behind it on the heap goes, and further.
                  volatile char *small = new char[1];
                  for (std::size_t at = 0;; at++)
                      small[at] = 1;
              }),
              "kernel krnl_0 uses memory that it does not have"));
    CHECK(has(error_of_kernel([](Channels) { apeiron_compute(~0ull); }), "computes for 18446744073709551615 cycles"));
    CHECK(has(error_of_kernel([](Channels) {
                  hls::stream<int> words("words");
                  words.set_depth(0);
              }),
              "gives stream words a depth of 0"));
    test_mistakes_of_senders();
    // A packet that nobody takes is in the way of the one that is waited for.
    const std::string stuck = error_of([] {
        Node node(2, 1, false, 2);
        node.start(0, [](Channels io) {
            send("0123456789abcdef0123456789abcdef", 33, 0, 1, 0, io.data_out[0]);
            send("x", 1, 0, 1, 1, io.data_out[0]);
        });
        node.scheduler.run(*node.start(1, [](Channels) { receive(1); }));
    });
    CHECK(has(stuck, "kernel krnl_1 reads message_data_in[1], which is empty\n  a packet waits for "
                     "message_data_in[0] of kernel krnl_1, which is full"));
    // A channel that the receiver lacks, a task that nobody is, and a kernel that waits for ever.
    CHECK(has(error_of_kernel([](Channels io) {
                  send("x", 1, 0, 0, 7, io.data_out[0]);
                  receive(0u);
              }),
              "a message has come for channel 7, and kernel krnl_0 has 4 input channels"));
    CHECK(has(error_of_kernel([](Channels io) {
                  send("x", 1, 0, 5, 0, io.data_out[0]);
                  receive(0u);
              }),
              "for task 5, and the design has no kernel"));
}

}  // namespace

int main()
{
    test_round_trips();
    test_long_messages();
    test_rate();
    test_full_channels();
    test_a_channel_of_one_word();
    test_channels_fill_behind_a_kernel_that_computes();
    test_headers();
    test_streams();
    test_intervals();
    test_computing();
    test_words_are_numbers();
    test_ddr();
    test_two_senders();
    test_mistakes();
    std::puts("kernels: all right");
    return 0;
}
