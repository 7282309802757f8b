#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "compat/mario.hpp"
#include "compat/memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace wz;
using namespace wz::compat;

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<nb::numpy, u8>;
using Actions = nb::ndarray<const i64, nb::ndim<1>, nb::device::cpu>;  ///< perhaps a column of many

/// A single environment's console, with the screen in nes-py's own layout.
struct Emulator {
    alignas(64) u8 pixels[kHeight * kWidth * 4] = {};  // so that no write meets two cache lines
    Player player;

    Emulator(const nb::bytes& rom, bool has_wram)
        : player(Game::of({reinterpret_cast<const u8*>(rom.c_str()), rom.size()}), has_wram,
                 Screen{pixels, false}) {}
};

/// Everything of an emulator, with its backup: for copies within one build, not for keeping.
nb::bytes save(const Emulator& e) {
    std::vector<u8> out;
    e.player.save(out);
    return nb::bytes(out.data(), out.size());
}

void load(Emulator& e, const nb::bytes& blob) {
    if (!e.player.load(reinterpret_cast<const u8*>(blob.c_str()), blob.size()))
        throw nb::value_error("This is not a saved state of this emulator.");
}

/// Players, the buttons that each action holds, and memory for observations.
struct Vector {
    Players players;
    const std::vector<u8> actions;
    const std::shared_ptr<Memory> memory;

    Vector(std::shared_ptr<const Game> game, bool has_wram, std::vector<Target> targets, int environments,
           int threads, bool owned, const Players::Arrays& arrays, std::vector<u8> actions)
        : players(std::move(game), has_wram, std::move(targets), environments, threads, owned, arrays),
          actions(std::move(actions)),
          memory(std::make_shared<Memory>(players.memory_size(),
                                          [this](u8* block) { players.prepare(block); })) {}

    /// An array that nobody else has. Its memory comes back when the last array or buffer that refers to it
    /// is gone, even if that is after the vector.
    Bytes frames() const {
        struct Lease {
            std::shared_ptr<Memory> memory;
            u8* block;
            ~Lease() { memory->give_back(block); }
        };
        auto* const lease = new Lease{memory, memory->take()};
        nb::capsule owner(lease, [](void* p) noexcept { delete static_cast<Lease*>(p); });
        return Bytes(lease->block, {static_cast<std::size_t>(players.environments()), kHeight, kWidth, 3},
                     owner);
    }
    void check(std::size_t entries, const Array<u8>& observations) const {
        if (entries != static_cast<std::size_t>(players.environments()))
            throw nb::value_error("Give one entry for each environment.");
        if (observations.size() != players.frames_size())
            throw nb::value_error("The array of observations has the wrong size for this vector.");
        if (players.owned() && !memory->has_taken(observations.data()))
            throw nb::value_error("The array of observations must be one of `frames`.");
    }
    /// Throws where there is no such action.
    nb::bytes buttons(const Actions& chosen) const {
        std::vector<u8> held(chosen.size());
        for (std::size_t i = 0; i < held.size(); ++i) {
            const auto action = static_cast<u64>(chosen(i));
            if (action >= actions.size()) throw nb::index_error("There is no such action.");
            held[i] = actions[action];
        }
        return nb::bytes(held.data(), held.size());
    }
};

Target target_of(const std::tuple<int, int, int>& t) {
    return {std::get<0>(t), std::get<1>(t), std::get<2>(t)};
}

}  // namespace

void bind_compat(nb::module_& m) {
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const StuckError& e) {
            PyErr_SetString(PyExc_RuntimeError, e.what());
        }
    });

    nb::class_<Emulator>(m, "CompatEmulator")
        .def(nb::init<const nb::bytes&, bool>(), "rom"_a, "has_wram"_a)
        .def_prop_ro("screen",
                     [](nb::object self) {
                         return Bytes(nb::cast<Emulator&>(self).pixels, {kHeight, kWidth, 4}, self);
                     })
        .def_prop_ro("ram",
                     [](nb::object self) {
                         return Bytes(nb::cast<Emulator&>(self).player.console().state.shell.ram, {0x800},
                                      self);
                     })
        .def("controller",
             [](nb::object self, int port) {
                 if (port < 0 || port > 1) throw nb::value_error("A controller port is 0 or 1.");
                 return Bytes(&nb::cast<Emulator&>(self).player.console().pads[port].buttons, {1}, self);
             })
        .def("reset", [](Emulator& e) { e.player.reset(); })
        .def("step",
             [](Emulator& e) {
                 nb::gil_scoped_release release;
                 e.player.frame();
             })
        .def("backup", [](Emulator& e) { e.player.backup(); })
        .def("restore", [](Emulator& e) { e.player.restore(); })
        .def("save", &save)
        .def("load", &load)
        .def_prop_rw(
            "skip_idle_loops", [](Emulator& e) { return e.player.console().skip_idle_loops; },
            [](Emulator& e, bool on) { e.player.console().skip_idle_loops = on; })
        .def_prop_rw(
            "translate", [](Emulator& e) { return e.player.console().translate; },
            [](Emulator& e, bool on) { e.player.console().translate = on; })
        .def_prop_ro("skipped_cycles", [](Emulator& e) { return e.player.console().skipped; })
        .def_prop_rw(
            "time_last", [](const Emulator& e) { return e.player.last.time; },
            [](Emulator& e, i64 v) { e.player.last.time = v; })
        .def_prop_rw(
            "x_last", [](const Emulator& e) { return e.player.last.x; },
            [](Emulator& e, i64 v) { e.player.last.x = v; })
        .def("skip_start_screen",
             [](Emulator& e, const std::tuple<int, int, int>& target) {
                 nb::gil_scoped_release release;
                 e.player.skip_start_screen(target_of(target));
             })
        .def("mark", [](Emulator& e) { e.player.mark(); })
        .def(
            "play",
            [](Emulator& e, bool single) {
                Outcome out;
                {
                    nb::gil_scoped_release release;
                    out = e.player.play(single);
                }
                static const char* const keys[kFields] = {"coins",  "flag_get", "life",  "score", "stage",
                                                          "status", "time",     "world", "x_pos", "y_pos"};
                nb::dict info;
                for (std::size_t f = 0; f < kFields; ++f) {
                    if (f == kFlagGet)
                        info[keys[f]] = nb::bool_(out.info[f] != 0);
                    else if (f == kStatus)
                        info[keys[f]] = out.info[f] == 0 ? "small" : out.info[f] == 1 ? "tall" : "fireball";
                    else
                        info[keys[f]] = out.info[f];
                }
                return nb::make_tuple(out.reward, out.done, info);
            },
            "single"_a);

    nb::class_<Vector>(m, "CompatVector")
        .def(
            "__init__",
            [](Vector* self, const nb::bytes& rom, bool has_wram,
               const std::vector<std::tuple<int, int, int>>& targets, const nb::bytes& actions, int threads,
               bool owned, Array<const i64> start, Array<i64> info, Array<double> reward, Array<bool> done) {
                const std::size_t n = reward.size();
                if (n == 0 || targets.empty() || info.size() != n * kFields || done.size() != n ||
                    start.size() != n || threads < 1)
                    throw nb::value_error("A buffer has the wrong size for this vector.");
                std::vector<Target> all;
                for (const auto& t : targets) all.push_back(target_of(t));
                const u8* const held = reinterpret_cast<const u8*>(actions.c_str());
                auto game = Game::of({reinterpret_cast<const u8*>(rom.c_str()), rom.size()});
                const Players::Arrays arrays{start.data(), info.data(), reward.data(),
                                             reinterpret_cast<u8*>(done.data())};
                nb::gil_scoped_release release;
                new (self) Vector(std::move(game), has_wram, std::move(all), static_cast<int>(n), threads,
                                  owned, arrays, {held, held + actions.size()});
            },
            "rom"_a, nb::kw_only(), "has_wram"_a, "targets"_a, "actions"_a, "threads"_a, "owned"_a, "start"_a,
            "info"_a, "reward"_a, "done"_a, nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(),
            nb::keep_alive<1, 10>(), nb::keep_alive<1, 11>())
        .def("reset",
             [](Vector& v, Array<const bool> mask, Array<u8> observations) {
                 v.check(mask.size(), observations);
                 nb::gil_scoped_release release;
                 v.players.reset(reinterpret_cast<const u8*>(mask.data()), observations.data());
             })
        .def("frames", &Vector::frames)
        .def("buttons", &Vector::buttons)
        .def("step",
             [](Vector& v, const nb::bytes& buttons, Array<u8> observations) {
                 v.check(buttons.size(), observations);
                 nb::gil_scoped_release release;
                 v.players.step(reinterpret_cast<const u8*>(buttons.c_str()), observations.data());
             })
        .def("copy_ram", [](const Vector& v, Array<u8> out) {
            const int n = v.players.environments();
            if (out.size() != static_cast<std::size_t>(n) * 0x800)
                throw nb::value_error("A buffer has the wrong size for this vector.");
            for (int i = 0; i < n; ++i) std::memcpy(out.data() + i * 0x800, v.players.player(i).ram(), 0x800);
        });
}
