#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings_common.hpp"
#include "pool/random.hpp"
#include "smb/telemetry.hpp"

namespace wz::python {
namespace {

/// The rules of the game for an episode that another emulator plays: its random stream, progress, end and
/// telemetry.
struct ForeignEpisode {
    bool stood_only;
    Random random;
    smb::Stage stage;
    smb::Episode episode;

    explicit ForeignEpisode(bool stood) : stood_only(stood) {}
    void begin(Array<const u8> ram, int x, int world, int number, int stage_index) {
        stage = {world, number};
        episode = {};
        episode.stage_index = stage_index;
        episode.journey.begin(checked(ram), x);
    }
    bool look(Array<const u8> ram, int x) {
        episode.look(checked(ram), x, stage, stood_only);
        return episode.over();
    }
    void report(Array<const u8> ram, int x, int frames, Array<i32> out) {
        if (out.size() != smb::kFieldCount) throw PoolError("A row of telemetry has the wrong size.");
        episode.frames = frames;
        smb::report(checked(ram), episode, out.data(), 1);
        out.data()[smb::kXPos] = x;
    }

  private:
    static const u8* checked(const Array<const u8>& ram) {
        if (ram.size() < sizeof(Machine::ram)) throw PoolError("The RAM of a console has 2048 bytes.");
        return ram.data();
    }
};

}  // namespace

void bind_episode(nb::module_& m) {
    nb::class_<ForeignEpisode>(m, "ForeignEpisode")
        .def(nb::init<bool>())
        .def("seed", [](ForeignEpisode& e, u64 seed) { e.random.state = seed; })
        .def("uniform", [](ForeignEpisode& e) { return e.random.uniform(); })
        .def("below", [](ForeignEpisode& e, int n) { return e.random.below(n); })
        .def("begin", &ForeignEpisode::begin)
        .def("look", &ForeignEpisode::look)
        .def("count_decision", [](ForeignEpisode& e, int step_limit,
                                  int stall_limit) { e.episode.count_decision(step_limit, stall_limit); })
        .def_prop_ro("terminated", [](const ForeignEpisode& e) { return e.episode.terminated(); })
        .def_prop_ro("truncated", [](const ForeignEpisode& e) { return e.episode.truncated(); })
        .def("report", &ForeignEpisode::report);
}

}  // namespace wz::python
