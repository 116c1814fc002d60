// The description of a design that `weft apeiron build` writes: what programs take by -b.
//
//   weft-apeiron 4
//   of krnl_sr_1,0,4,4,256,1;krnl_middle,none,0,0,auto,1;samples,krnl_front.samples_out,krnl_back.samples_in,64,0
//   frequency 100
//   switch TextaRossa_switch_1
//   kernel krnl_sr_1 port 0 inputs 4 outputs 4 depth 256 cycles 1 code latency.kernels/krnl_sr_1.so
//   kernel krnl_middle port none inputs 0 outputs 0 depth 256 cycles 1 code latency.kernels/krnl_middle.so
//   stream samples from krnl_front samples_out to krnl_back samples_in depth 64 count 0
//   end
//
// `of` has kernels and streams as config.yaml has them.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_DESIGN_H
#define WEFT_APEIRON_DESIGN_H

#include "clock.h"
#include "version.h"
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft_apeiron {

struct KernelDesign {
    std::string name;
    // Whether it is at a port of the Communication IP, and at which.
    bool has_port = true;
    unsigned port = 0, inputs = 0, outputs = 0;
    // Words of the FIFO of each input channel; 0: those of the largest packet.
    std::size_t depth = 0;
    // Between two accesses to one stream.
    Cycle cycles = 1;
    // Its shared object.
    std::string code;
};

// A stream that joins two kernels: parameters of their functions. `count`: where these are arrays, of so many streams.
struct StreamDesign {
    std::string name, writer, written, reader, read;
    std::size_t depth = 0, count = 0;
};

struct Design {
    std::uint64_t megahertz = 0;
    // Its kernels and streams in a word.
    std::string of;
    // The name of the Communication IP among the kernels.
    std::string switch_name;
    std::vector<KernelDesign> kernels;
    std::vector<StreamDesign> streams;

    // Reads a description. Throws what is wrong with it.
    static Design read(const std::string &path)
    {
        std::ifstream file(path);
        if (!file)
            throw std::runtime_error(path + ": there is no such design; make it with weft apeiron build");
        check_version(file, path);
        std::string line;
        std::getline(file, line);
        Design design;
        const std::string folder = path.substr(0, path.rfind('/') + 1);
        bool is_whole = false;
        while (!is_whole && std::getline(file, line)) {
            std::istringstream words(line);
            std::string key;
            words >> key;
            if (key == "frequency")
                words >> design.megahertz;
            else if (key == "of")
                words >> design.of;
            else if (key == "switch")
                words >> design.switch_name;
            else if (key == "kernel")
                design.kernels.push_back(kernel(words, folder));
            else if (key == "stream")
                design.streams.push_back(stream(words));
            is_whole = key == "end";
            if (words.fail())
                throw std::runtime_error(path + ": `" + line + "` is cut short; make it again with weft apeiron build");
        }
        if (!is_whole)
            throw std::runtime_error(path + ": the design is cut short; make it again with weft apeiron build");
        return design;
    }

  private:
    static StreamDesign stream(std::istringstream &words)
    {
        StreamDesign stream;
        std::string key;
        words >> stream.name >> key >> stream.writer >> stream.written >> key >> stream.reader >> stream.read >> key >>
            stream.depth >> key >> stream.count;
        return stream;
    }

    static KernelDesign kernel(std::istringstream &words, const std::string &folder)
    {
        KernelDesign kernel;
        std::string key, port;
        words >> kernel.name >> key >> port >> key >> kernel.inputs >> key >> kernel.outputs >> key >>
            kernel.depth >> key >> kernel.cycles >> key >> std::ws;
        std::getline(words, kernel.code);
        kernel.has_port = port != "none";
        if (kernel.has_port) {
            std::istringstream number(port);
            number >> kernel.port;
            if (number.fail())
                words.setstate(std::ios::failbit);
        }
        if (kernel.code.empty())
            words.setstate(std::ios::failbit);
        else if (kernel.code[0] != '/')
            kernel.code = folder + kernel.code;
        return kernel;
    }
};

}  // namespace weft_apeiron

#endif
