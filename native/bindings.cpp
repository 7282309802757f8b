#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <mutex>

#include "bindings_common.hpp"
#include "nes/palette.hpp"
#include "nes/snapshot.hpp"
#include "simd/kernels.hpp"
#include "simd/sets.hpp"
#include "smb/reward.hpp"
#include "threads/team.hpp"

namespace wz::python {

using namespace nb::literals;

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
    simd::kernels();  // complains of WARPZONE_SIMD here, not in the midst of a frame
    std::lock_guard hold(lock);
    if (auto found = in_use[key].lock()) return found;
    std::erase_if(in_use, [](const auto& entry) { return entry.second.expired(); });
    auto cartridge = Cartridge::parse(to_vector(rom));
    in_use[key] = cartridge;
    return cartridge;
}

namespace {

/// A console with its cartridge and screen.
struct MachineObject {
    std::shared_ptr<const Cartridge> cartridge;
    Machine machine;
    Frame frame{};
    std::atomic<bool> busy{false};

    /// One call at a time: `step` lets other Python threads run.
    class Turn {
      public:
        explicit Turn(MachineObject& of) : of_(of) {
            if (of_.busy.exchange(true))
                throw PoolError("Two threads use the machine at once: give each thread its own.");
        }
        ~Turn() { of_.busy = false; }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

      private:
        MachineObject& of_;
    };

    MachineObject(nb::object rom, const std::string& region) : cartridge(cartridge_of(nb::bytes(rom))) {
        if (region != "ntsc" && region != "pal")
            throw PoolError("Unknown region '" + region + "': choose 'ntsc' or 'pal'.");
        power_on(machine, *cartridge, region == "pal" ? Region::Pal : Region::Ntsc);
    }
    void step(int buttons, int frames, bool render, int buttons2, bool skip_idle_loops, bool translate) {
        if (buttons < 0 || buttons > 255 || buttons2 < 0 || buttons2 > 255)
            throw PoolError("Buttons are eight bits, 0 to 255.");
        if (frames < 0) throw PoolError("A machine can't run a negative number of frames.");
        const Turn turn(*this);
        nb::gil_scoped_release release;
        RunOptions options;
        options.skip_idle_loops = skip_idle_loops;
        options.translate = translate;
        for (int i = 0; i < frames; ++i)
            run_frame(machine, *cartridge, static_cast<u8>(buttons), static_cast<u8>(buttons2),
                      render ? &frame : nullptr, options);
    }
};

/// `use` with the machine for itself.
template <class Use>
auto alone(Use use) {
    return [use](MachineObject& c) {
        const MachineObject::Turn turn(c);
        return use(c);
    };
}

template <auto Member, std::size_t Size>
Bytes memory_view(nb::object self) {
    MachineObject& c = nb::cast<MachineObject&>(self);
    return Bytes((c.machine.*Member), {Size}, self);
}

/// Re-raises an engine error as the class of that name in warpzone.errors.
void raise_python(const char* name, const char* message) {
    nb::object cls = nb::module_::import_("warpzone.errors").attr(name);
    PyErr_SetString(cls.ptr(), message);
}

}  // namespace
}  // namespace wz::python

NB_MODULE(_native, m) {
    using namespace wz;
    using namespace wz::python;
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
        } catch (const ThreadError& e) {
            raise_python("ConfigError", e.what());
        } catch (const simd::SetError& e) {
            raise_python("ConfigError", e.what());
        }
    });

    nb::class_<MachineObject>(
        m, "Machine",
        "A NES with a mapper-0 cartridge, at power-on; `region` is \"ntsc\" or \"pal\".\n\n"
        "`step` runs whole frames, from one vertical blank to the next. Buttons are bits 7..0: right left "
        "down "
        "up start\nselect B A, as in nes-py and .fm2 movies. Memory views (`ram`, `wram`) are live and "
        "writable.")
        .def(nb::init<nb::object, const std::string&>(), "rom"_a, "region"_a = "ntsc")
        .def("step", &MachineObject::step, "buttons"_a = 0, "frames"_a = 1, "render"_a = true, nb::kw_only(),
             "buttons2"_a = 0, "skip_idle_loops"_a = true, "translate"_a = true,
             "Run `frames` frames with the buttons held; `render` draws them. The shortcuts change only "
             "speed.")
        .def_prop_ro("region",
                     [](const MachineObject& c) { return c.machine.region == Region::Pal ? "pal" : "ntsc"; })
        .def_prop_ro("ram", &memory_view<&Machine::ram, 0x800>)
        .def_prop_ro("wram", &memory_view<&Machine::wram, 0x2000>)
        .def_prop_ro("screen", alone([](MachineObject& c) { return rgb_array(c.frame); }),
                     nb::rv_policy::move)
        .def_prop_ro("frame", alone([](MachineObject& c) { return c.machine.frame; }))
        .def_prop_ro("lagged", alone([](MachineObject& c) { return c.machine.lagged != 0; }))
        .def_prop_ro("cycles", alone([](MachineObject& c) { return c.machine.clock; }))
        .def_prop_ro("jammed", alone([](MachineObject& c) { return c.machine.jammed != 0; }))
        .def("peek",
             [](MachineObject& c, int addr) {
                 const MachineObject::Turn turn(c);
                 if (addr < 0 || addr > 0xFFFF) throw PoolError("An address is 0 to 0xFFFF.");
                 return peek(c.machine, *c.cartridge, static_cast<u16>(addr));
             })
        .def("save", alone([](MachineObject& c) { return to_bytes(save_machine(c.machine, *c.cartridge)); }))
        .def("load",
             [](MachineObject& c, nb::object blob) {
                 const MachineObject::Turn turn(c);
                 load_machine(to_vector(nb::bytes(blob)), c.machine, *c.cartridge);
             })
        .def("reset", alone([](MachineObject& c) { press_reset(c.machine, *c.cartridge); }));

    bind_pool(m);
    bind_pack(m);
    bind_episode(m);

    m.def("instruction_sets", &simd::instruction_sets,
          "Instruction sets that the engine can use on this processor, best first.");
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
