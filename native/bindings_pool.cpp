#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <set>

#include "bindings_common.hpp"
#include "pool/pool.hpp"

namespace wz::python {
namespace {

using namespace nb::literals;

/// Fills a PoolConfig from keyword arguments. Those left out keep their defaults.
class SettingReader {
  public:
    explicit SettingReader(const nb::kwargs& given) : given_(given) {}

    void operator()(const char* name, int& v) { read(name, v, "a whole number"); }
    void operator()(const char* name, double& v) { read(name, v, "a number"); }
    void operator()(const char* name, bool& v) { read(name, v, "True or False"); }
    void operator()(const char* name, Palette& v) {
        bool measured = v == Palette::Measured;
        (*this)(name, measured);
        v = measured ? Palette::Measured : Palette::NesPy;
    }
    void operator()(const char* name, Region& v) {
        bool pal = v == Region::Pal;
        (*this)(name, pal);
        v = pal ? Region::Pal : Region::Ntsc;
    }
    void operator()(const char* name, Autoreset& v) {
        int number = static_cast<int>(v);
        (*this)(name, number);
        v = number < 0 || number > 255 ? Autoreset{255} : static_cast<Autoreset>(number);
    }
    void operator()(const char* name, std::vector<Channel>& v) {
        std::string letters;
        if (!read(name, letters, "a string of the letters y, r, g and b")) return;
        v.clear();
        for (char letter : letters) {
            const auto at = std::string("yrgb").find(letter);
            if (at == std::string::npos)
                throw PoolError("channels must be a string of the letters y, r, g and b.");
            v.push_back(static_cast<Channel>(at));
        }
    }
    void operator()(const char* name, std::vector<smb::Stage>& v) {
        std::vector<std::pair<int, int>> stages;
        if (!read(name, stages, "a list of (world, stage)")) return;
        v.clear();
        for (const auto& [world, stage] : stages) v.push_back({world, stage});
    }
    void operator()(const char* name, std::vector<std::vector<u8>>& v) {
        std::vector<nb::bytes> memories;
        if (!read(name, memories, "a list of bytes")) return;
        v.clear();
        for (const nb::bytes& memory : memories) v.push_back(to_vector(memory));
    }
    void operator()(const char* name, std::vector<u8>& v) {
        if (!read(name, v, "a list of buttons, each 0 to 255")) return;
    }

    /// Throws PoolError for a name that no setting has.
    void finish() const {
        for (const auto& [key, value] : given_)
            if (const std::string name = nb::cast<std::string>(key); !known_.contains(name))
                throw PoolError("A pool has no setting '" + name + "'.");
    }

  private:
    template <class T>
    bool read(const char* name, T& v, const char* kind) {
        known_.insert(name);
        if (!given_.contains(name)) return false;
        if (!nb::try_cast<T>(given_[name], v)) throw PoolError(std::string(name) + " must be " + kind + ".");
        return true;
    }
    const nb::kwargs& given_;
    std::set<std::string> known_;
};

/// The caller's arrays that a step writes to, checked.
struct Arrays {
    Array<u8> observations;
    Array<i32> telemetry;
    Array<bool> terminated, truncated;
    Array<u8> final_observations;
    Array<i32> final_telemetry;

    Results results(const Pool& pool, FramePacker* packer = nullptr) const {
        const auto n = static_cast<std::size_t>(pool.environments()), pixels = n * pool.observation_size();
        if (observations.size() != pixels || final_observations.size() != pixels ||
            telemetry.size() != n * smb::kFieldCount || final_telemetry.size() != n * smb::kFieldCount ||
            terminated.size() != n || truncated.size() != n)
            throw PoolError("A buffer has the wrong size for this pool.");
        if (packer &&
            (packer->frames() != pool.environments() || packer->frame_size() != pool.observation_size()))
            throw PoolError("The packer is for other frames than this pool's.");
        return {observations.data(),
                telemetry.data(),
                reinterpret_cast<u8*>(terminated.data()),
                reinterpret_cast<u8*>(truncated.data()),
                final_observations.data(),
                final_telemetry.data(),
                packer};
    }
};

struct PoolObject {
    std::optional<Arrays> sent;  ///< what the threads write to until `receive`; goes after the pool
    Pool pool;

    PoolObject(std::shared_ptr<const Cartridge> cartridge, PoolConfig config)
        : pool(std::move(cartridge), std::move(config)) {}
};

const i64* checked_actions(const Pool& pool, const Array<const i64>& actions) {
    if (actions.size() != static_cast<std::size_t>(pool.environments()))
        throw PoolError("Give one action for each of the " + std::to_string(pool.environments()) +
                        " environments.");
    return actions.data();
}

void reset(PoolObject& self, std::optional<Array<const bool>> mask, std::optional<Array<const u64>> seeds,
           std::optional<nb::bytes> snapshot, Array<u8> observations, Array<i32> telemetry,
           Array<bool> terminated, Array<bool> truncated, Array<u8> final_observations,
           Array<i32> final_telemetry, FramePacker* packer) {
    const auto n = static_cast<std::size_t>(self.pool.environments());
    if ((mask && mask->size() != n) || (seeds && seeds->size() != n))
        throw PoolError("A reset mask or a list of seeds needs one entry for each environment.");
    const Arrays arrays{observations, telemetry, terminated, truncated, final_observations, final_telemetry};
    const Results to = arrays.results(self.pool, packer);
    std::vector<u8> blob;
    if (snapshot) blob = to_vector(*snapshot);
    nb::gil_scoped_release release;
    self.pool.reset(mask ? reinterpret_cast<const u8*>(mask->data()) : nullptr,
                    seeds ? seeds->data() : nullptr, snapshot ? &blob : nullptr, to);
}

void step(PoolObject& self, Array<const i64> actions, Array<u8> observations, Array<i32> telemetry,
          Array<bool> terminated, Array<bool> truncated, Array<u8> final_observations,
          Array<i32> final_telemetry, FramePacker* packer) {
    const i64* chosen = checked_actions(self.pool, actions);
    const Arrays arrays{observations, telemetry, terminated, truncated, final_observations, final_telemetry};
    const Results to = arrays.results(self.pool, packer);
    nb::gil_scoped_release release;
    self.pool.step(chosen, to);
}

void send(PoolObject& self, Array<const i64> actions, Array<u8> observations, Array<i32> telemetry,
          Array<bool> terminated, Array<bool> truncated, Array<u8> final_observations,
          Array<i32> final_telemetry) {
    const i64* chosen = checked_actions(self.pool, actions);
    Arrays arrays{observations, telemetry, terminated, truncated, final_observations, final_telemetry};
    // It only wakes threads: not worth letting go of Python's lock, under which `sent` changes.
    self.pool.send(chosen, arrays.results(self.pool));
    self.sent = std::move(arrays);
}

void receive(PoolObject& self) {
    try {
        nb::gil_scoped_release release;
        self.pool.receive();
    } catch (...) {
        if (!self.pool.pending()) self.sent.reset();
        throw;
    }
    self.sent.reset();
}

}  // namespace

void bind_pool(nb::module_& m) {
    nb::class_<PoolObject>(m, "Pool")
        .def(
            "__init__",
            [](PoolObject* self, const nb::bytes& rom, const nb::kwargs& settings) {
                PoolConfig config;
                SettingReader reader(settings);
                visit(config, reader);
                reader.finish();
                auto cartridge = cartridge_of(rom);
                nb::gil_scoped_release release;
                new (self) PoolObject(std::move(cartridge), std::move(config));
            },
            "rom"_a, "settings"_a)
        .def("reset", &reset, "mask"_a.none(), "seeds"_a.none(), "snapshot"_a.none(), "observations"_a,
             "telemetry"_a, "terminated"_a, "truncated"_a, "final_observations"_a, "final_telemetry"_a,
             "packer"_a = nb::none())
        .def("send", &send)
        .def("receive", &receive)
        .def("step", &step, "actions"_a, "observations"_a, "telemetry"_a, "terminated"_a, "truncated"_a,
             "final_observations"_a, "final_telemetry"_a, "packer"_a = nb::none())
        .def_prop_ro("pending", [](const PoolObject& self) { return self.pool.pending(); })
        .def("set_stage_weights",
             [](PoolObject& self, std::vector<double> weights) {
                 self.pool.set_stage_weights(std::move(weights));
             })
        .def(
            "add_stage",
            [](PoolObject& self, int world, int stage, const nb::bytes& memory) {
                auto bytes = to_vector(memory);
                nb::gil_scoped_release release;
                return self.pool.add_stage({world, stage}, std::move(bytes));
            },
            "world"_a, "stage"_a, "memory"_a = nb::bytes("", 0))
        .def("set_stage",
             [](PoolObject& self, int which, int world, int stage, const nb::bytes& memory) {
                 auto bytes = to_vector(memory);
                 nb::gil_scoped_release release;
                 self.pool.set_stage(which, {world, stage}, std::move(bytes));
             })
        .def("queue_start", [](PoolObject& self, int index,
                               const nb::bytes& b) { self.pool.queue_start(index, to_vector(b)); })
        .def("copy_ram",
             [](PoolObject& self, Array<u8> out) {
                 if (out.size() != static_cast<std::size_t>(self.pool.environments()) * sizeof(Machine::ram))
                     throw PoolError("A buffer has the wrong size for this pool.");
                 self.pool.copy_ram(out.data());
             })
        .def("screen",
             [](PoolObject& self, int index) {
                 const auto frame = std::make_unique<Frame>();
                 self.pool.draw(index, *frame);
                 return rgb_array(*frame);
             })
        .def("snapshot", [](PoolObject& self, int index,
                            int frames) { return to_bytes(self.pool.snapshot(index, frames)); })
        .def("restore",
             [](PoolObject& self, int index, const nb::bytes& b) { self.pool.restore(index, to_vector(b)); })
        .def("observe", [](PoolObject& self, int index, Array<u8> out) {
            if (out.size() != self.pool.observation_size())
                throw PoolError("A buffer has the wrong size for this pool.");
            self.pool.observe(index, out.data());
        });
}

}  // namespace wz::python
