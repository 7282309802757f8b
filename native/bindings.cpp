#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <mutex>

#include "nes/palette.hpp"
#include "nes/snapshot.hpp"
#include "pool/pool.hpp"
#include "smb/reward.hpp"

namespace nb = nanobind;
using namespace nb::literals;

void bind_net(nb::module_& m);
void bind_compat(nb::module_& m);

namespace {

using namespace wz;

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<nb::numpy, u8>;

std::vector<u8> to_vector(const nb::bytes& b) {
    const u8* p = reinterpret_cast<const u8*>(b.c_str());
    return {p, p + b.size()};
}
nb::bytes to_bytes(const std::vector<u8>& v) { return nb::bytes(v.data(), v.size()); }

/// A new array of colours, 240 x 256 x 3, that Python owns.
Bytes rgb_array(const Frame& f) {
    u8* out = new u8[Frame::kHeight * Frame::kWidth * 3];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<u8*>(p); });
    u8* to = out;
    for (int y = 0; y < Frame::kHeight; ++y) {
        const u8* line = f.line(y);
        for (int x = 0; x < Frame::kWidth; ++x) {
            const Rgb c = colour(line[x], f.emphasis[y]);
            *to++ = c.r, *to++ = c.g, *to++ = c.b;
        }
    }
    return Bytes(out, {Frame::kHeight, Frame::kWidth, 3}, owner);
}

/// The cartridge of an image. Those in use are shared, so that what was translated for one is there for all.
std::shared_ptr<const Cartridge> cartridge_of(const nb::bytes& rom) {
    static std::mutex lock;
    static std::map<std::string, std::weak_ptr<const Cartridge>> in_use;
    const std::string key(rom.c_str(), rom.size());
    std::lock_guard hold(lock);
    if (auto found = in_use[key].lock()) return found;
    std::erase_if(in_use, [](const auto& entry) { return entry.second.expired(); });
    auto cartridge = Cartridge::parse(to_vector(rom));
    in_use[key] = cartridge;
    return cartridge;
}

/// A console with its cartridge and screen.
struct Console1 {
    std::shared_ptr<const Cartridge> cartridge;
    Machine machine;
    Frame frame{};

    Console1(const nb::bytes& rom, bool pal) : cartridge(cartridge_of(rom)) {
        power_on(machine, *cartridge, pal ? Region::Pal : Region::Ntsc);
    }
    void step(int buttons, int frames, bool render, int buttons2, bool skip_idle_loops, bool translate) {
        if (buttons < 0 || buttons > 255 || buttons2 < 0 || buttons2 > 255)
            throw PoolError("Buttons are eight bits, 0 to 255.");
        if (frames < 0) throw PoolError("A machine can't run a negative number of frames.");
        nb::gil_scoped_release release;
        RunOptions options;
        options.skip_idle_loops = skip_idle_loops;
        options.translate = translate;
        for (int i = 0; i < frames; ++i)
            run_frame(machine, *cartridge, static_cast<u8>(buttons), static_cast<u8>(buttons2),
                      render ? &frame : nullptr, options);
    }
};

template <auto Member, std::size_t Size>
Bytes memory_view(nb::object self) {
    Console1& c = nb::cast<Console1&>(self);
    return Bytes((c.machine.*Member), {Size}, self);
}

Results results(const PoolConfig& config, std::size_t observation, Array<u8> observations,
                Array<i32> telemetry, Array<bool> terminated, Array<bool> truncated,
                Array<u8> final_observations, Array<i32> final_telemetry) {
    const auto n = static_cast<std::size_t>(config.environments);
    if (observations.size() != n * observation || final_observations.size() != n * observation ||
        telemetry.size() != n * smb::kFieldCount || final_telemetry.size() != n * smb::kFieldCount ||
        terminated.size() != n || truncated.size() != n)
        throw PoolError("A buffer has the wrong size for this pool.");
    return {observations.data(),
            telemetry.data(),
            reinterpret_cast<u8*>(terminated.data()),
            reinterpret_cast<u8*>(truncated.data()),
            final_observations.data(),
            final_telemetry.data()};
}

/// Re-raises an engine error as the class of that name in warpzone.errors.
void raise_python(const char* name, const char* message) {
    nb::object cls = nb::module_::import_("warpzone.errors").attr(name);
    PyErr_SetString(cls.ptr(), message);
}

void check_index(const Pool& p, int i) {
    if (i < 0 || i >= p.environments())
        throw PoolError("There is no environment " + std::to_string(i) + " among " +
                        std::to_string(p.environments()) + ".");
}
void check_idle(const Pool& p) {
    if (p.busy()) throw PoolError("A step is under way: call recv first.");
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The compiled engine: a console (Machine), and many at once (Pool).";
    nb::set_leak_warnings(false);
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const RomError& e) {
            raise_python("RomError", e.what());
        } catch (const SnapshotError& e) {
            raise_python("CheckpointError", e.what());
        } catch (const smb::GameError& e) {
            raise_python("RomError", e.what());
        } catch (const PoolError& e) {
            raise_python("ConfigError", e.what());
        }
    });

    nb::class_<Console1>(m, "Machine")
        .def(nb::init<const nb::bytes&, bool>(), "rom"_a, "pal"_a)
        .def("step", &Console1::step, "buttons"_a, "frames"_a, "render"_a, "buttons2"_a, "skip_idle_loops"_a,
             "translate"_a)
        .def_prop_ro("ram", &memory_view<&Machine::ram, 0x800>)
        .def_prop_ro("wram", &memory_view<&Machine::wram, 0x2000>)
        .def_prop_ro(
            "screen", [](const Console1& c) { return rgb_array(c.frame); }, nb::rv_policy::move)
        .def_prop_ro("frame", [](const Console1& c) { return c.machine.frame; })
        .def_prop_ro("lagged", [](const Console1& c) { return c.machine.lagged != 0; })
        .def_prop_ro("cycles", [](const Console1& c) { return c.machine.clock; })
        .def_prop_ro("jammed", [](const Console1& c) { return c.machine.jammed != 0; })
        .def_prop_ro("pc", [](const Console1& c) { return c.machine.pc; })
        .def("peek",
             [](const Console1& c, int addr) {
                 if (addr < 0 || addr > 0xFFFF) throw PoolError("An address is 0 to 0xFFFF.");
                 return peek(c.machine, *c.cartridge, static_cast<u16>(addr));
             })
        .def("save", [](const Console1& c) { return to_bytes(save_machine(c.machine, *c.cartridge)); })
        .def("load",
             [](Console1& c, const nb::bytes& b) { load_machine(to_vector(b), c.machine, *c.cartridge); })
        .def("reset", [](Console1& c) { press_reset(c.machine, *c.cartridge); });

    nb::class_<Pool>(m, "Pool")
        .def(
            "__init__",
            [](Pool* self, const nb::bytes& rom, int environments, int threads, int frame_skip,
               int frame_stack, int height, int width, int top, const std::string& channels,
               bool measured_palette, double sticky, int noop_max, bool max_pool, bool ground_stood,
               int stall_limit, int step_limit, int autoreset, bool pal, bool lost_levels, bool pin,
               const std::vector<std::pair<int, int>>& stages, const std::vector<int>& actions) {
                PoolConfig c;
                c.environments = environments;
                c.threads = threads;
                c.height = height;
                c.width = width;
                c.top = top;
                c.palette = measured_palette ? Palette::Measured : Palette::NesPy;
                c.autoreset = static_cast<Autoreset>(autoreset);
                c.region = pal ? Region::Pal : Region::Ntsc;
                c.lost_levels = lost_levels;
                c.pin = pin;
                for (const auto& [world, stage] : stages) c.stages.push_back({world, stage});
                c.slot.frame_skip = frame_skip;
                c.slot.frame_stack = frame_stack;
                c.slot.sticky = sticky;
                c.slot.noop_max = noop_max;
                c.slot.max_pool = max_pool;
                c.slot.ground_stood = ground_stood;
                c.slot.stall_limit = stall_limit;
                c.slot.step_limit = step_limit;
                c.slot.channels.clear();
                for (char ch : channels)
                    c.slot.channels.push_back(ch == 'r'   ? Channel::Red
                                              : ch == 'g' ? Channel::Green
                                              : ch == 'b' ? Channel::Blue
                                                          : Channel::Gray);
                for (int a : actions) c.slot.actions.push_back(static_cast<u8>(a));
                auto cartridge = cartridge_of(rom);
                nb::gil_scoped_release release;
                new (self) Pool(std::move(cartridge), std::move(c));
            },
            "rom"_a, nb::kw_only(), "environments"_a, "threads"_a, "frame_skip"_a, "frame_stack"_a,
            "height"_a, "width"_a, "top"_a, "channels"_a, "measured_palette"_a, "sticky"_a, "noop_max"_a,
            "max_pool"_a, "ground_stood"_a, "stall_limit"_a, "step_limit"_a, "autoreset"_a, "pal"_a,
            "lost_levels"_a, "pin"_a, "stages"_a, "actions"_a)
        .def(
            "reset",
            [](Pool& p, std::optional<Array<const bool>> mask, std::optional<Array<const u64>> seeds,
               std::optional<nb::bytes> snapshot, Array<u8> observations, Array<i32> telemetry,
               Array<bool> terminated, Array<bool> truncated, Array<u8> final_observations,
               Array<i32> final_telemetry) {
                const auto n = static_cast<std::size_t>(p.environments());
                if ((mask && mask->size() != n) || (seeds && seeds->size() != n))
                    throw PoolError("A reset mask or a list of seeds needs one entry for each environment.");
                const Results to = results(p.config(), p.observation_size(), observations, telemetry,
                                           terminated, truncated, final_observations, final_telemetry);
                std::vector<u8> blob;
                if (snapshot) blob = to_vector(*snapshot);
                nb::gil_scoped_release release;
                p.reset(mask ? reinterpret_cast<const u8*>(mask->data()) : nullptr,
                        seeds ? seeds->data() : nullptr, snapshot ? &blob : nullptr, to);
            },
            "mask"_a.none(), "seeds"_a.none(), "snapshot"_a.none(), "observations"_a, "telemetry"_a,
            "terminated"_a, "truncated"_a, "final_observations"_a, "final_telemetry"_a)
        .def("send",
             [](Pool& p, Array<const i64> actions, Array<u8> observations, Array<i32> telemetry,
                Array<bool> terminated, Array<bool> truncated, Array<u8> final_observations,
                Array<i32> final_telemetry) {
                 if (actions.size() != static_cast<std::size_t>(p.environments()))
                     throw PoolError("Give one action for each of the " + std::to_string(p.environments()) +
                                     " environments.");
                 const Results to = results(p.config(), p.observation_size(), observations, telemetry,
                                            terminated, truncated, final_observations, final_telemetry);
                 nb::gil_scoped_release release;
                 p.send(actions.data(), to);
             })
        .def("receive",
             [](Pool& p) {
                 nb::gil_scoped_release release;
                 p.receive();
             })
        .def("step",
             [](Pool& p, Array<const i64> actions, Array<u8> observations, Array<i32> telemetry,
                Array<bool> terminated, Array<bool> truncated, Array<u8> final_observations,
                Array<i32> final_telemetry) {
                 if (actions.size() != static_cast<std::size_t>(p.environments()))
                     throw PoolError("Give one action for each of the " + std::to_string(p.environments()) +
                                     " environments.");
                 const Results to = results(p.config(), p.observation_size(), observations, telemetry,
                                            terminated, truncated, final_observations, final_telemetry);
                 nb::gil_scoped_release release;
                 p.step(actions.data(), to);
             })
        .def_prop_ro("pending", &Pool::pending)
        .def("set_stage_weights",
             [](Pool& p, const std::vector<double>& w) {
                 check_idle(p);
                 double sum = 0;
                 for (double x : w) {
                     if (!(x >= 0)) throw PoolError("Stage weights can't be negative.");
                     sum += x;
                 }
                 if (w.size() != p.config().stages.size() || !(sum > 0))
                     throw PoolError("Give one weight for each stage, not all of them zero.");
                 p.set_stage_weights(w);
             })
        .def("add_stage",
             [](Pool& p, int world, int stage) {
                 check_idle(p);
                 nb::gil_scoped_release release;
                 return p.add_stage({world, stage});
             })
        .def("queue_start",
             [](Pool& p, int i, const nb::bytes& b) {
                 check_index(p, i);
                 check_idle(p);
                 p.queue_start(i, to_vector(b));
             })
        .def("copy_ram",
             [](Pool& p, Array<u8> out) {
                 check_idle(p);
                 if (out.size() != static_cast<std::size_t>(p.environments()) * 0x800)
                     throw PoolError("A buffer has the wrong size for this pool.");
                 for (int i = 0; i < p.environments(); ++i)
                     std::memcpy(out.data() + i * 0x800, p.slot(i).machine().ram, 0x800);
             })
        .def("screen",
             [](Pool& p, int i) {
                 check_index(p, i);
                 check_idle(p);
                 const auto frame = std::make_unique<Frame>();
                 p.slot(i).draw(*frame);
                 return rgb_array(*frame);
             })
        .def("snapshot",
             [](Pool& p, int i, int frames) {
                 check_index(p, i);
                 check_idle(p);
                 if (frames < 1 || frames > p.config().slot.frame_stack)
                     throw PoolError("A snapshot holds between one and all of the stacked frames.");
                 return to_bytes(p.slot(i).save(frames));
             })
        .def("restore",
             [](Pool& p, int i, const nb::bytes& b) {
                 check_index(p, i);
                 check_idle(p);
                 p.slot(i).load(to_vector(b));
             })
        .def("observe",
             [](Pool& p, int i, Array<u8> out) {
                 check_index(p, i);
                 check_idle(p);
                 if (out.size() != p.observation_size())
                     throw PoolError("A buffer has the wrong size for this pool.");
                 p.slot(i).observe(out.data());
             })
        .def("random_state",
             [](Pool& p, int i) {
                 check_index(p, i);
                 return p.slot(i).random().state;
             })
        .def("close", [](Pool&) {});

    m.def(
        "shape_rewards",
        [](Array<const i32> before, Array<const i32> after, Array<const bool> fresh, bool signed_distance,
           double cap, float clip, const std::vector<float>& worth, Array<float> terms, Array<float> total,
           Array<i32> dx) {
            const std::size_t n = total.size();
            if (before.size() != smb::kFieldCount * n || after.size() != smb::kFieldCount * n ||
                fresh.size() != n || terms.size() != smb::kRewardTerms * n || dx.size() != n ||
                worth.size() != smb::kClipTerm)
                throw PoolError("A buffer has the wrong size for these rewards.");
            smb::RewardRule rule{signed_distance, cap, clip, {}};
            std::copy(worth.begin(), worth.end(), rule.worth);
            smb::shape_rewards(rule, before.data(), after.data(), fresh.data(), n, terms.data(), total.data(),
                               dx.data());
        },
        "before"_a, "after"_a, "fresh"_a, "signed_distance"_a, "cap"_a, "clip"_a, "worth"_a, "terms"_a,
        "total"_a, "dx"_a);

    nb::list fields;
    for (const char* name : smb::kFieldNames) fields.append(name);
    m.attr("FIELDS") = fields;
    nb::list palette;
    for (int i = 0; i < 64; ++i) {
        const Rgb c = colour(i, 0);
        palette.append(nb::make_tuple(c.r, c.g, c.b));
    }
    m.attr("PALETTE") = palette;
    bind_net(m);
    bind_compat(m);
}
