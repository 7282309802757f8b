#pragma once
#include <stdexcept>
#include <vector>

#include "nes/machine.hpp"

namespace wz {

/// The bytes are not a snapshot, are damaged, or belong to another game. The message is a sentence for the
/// user.
struct SnapshotError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Appends values to bytes, little-endian, the same on every platform.
class Writer {
  public:
    template <class T>
    void operator()(const T& v) {
        put(&v, sizeof(T));
    }
    template <class T, std::size_t N>
    void operator()(const T (&v)[N]) {
        put(v, sizeof v);
    }
    void bytes(const u8* p, std::size_t n) { put(p, n); }
    std::vector<u8> take() { return std::move(out_); }
    std::vector<u8>& data() { return out_; }

  private:
    void put(const void* p, std::size_t n) {
        const u8* b = static_cast<const u8*>(p);
        out_.insert(out_.end(), b, b + n);
    }
    std::vector<u8> out_;
};

/// Reads them back; throws SnapshotError when the bytes run out.
class Reader {
  public:
    Reader(const u8* p, std::size_t n) : at_(p), left_(n) {}
    template <class T>
    void operator()(T& v) {
        get(&v, sizeof(T));
    }
    template <class T, std::size_t N>
    void operator()(T (&v)[N]) {
        get(v, sizeof v);
    }
    void bytes(u8* p, std::size_t n) { get(p, n); }
    std::size_t left() const { return left_; }

  private:
    void get(void* p, std::size_t n) {
        if (n > left_) throw SnapshotError("The snapshot is cut short.");
        std::memcpy(p, at_, n);
        at_ += n;
        left_ -= n;
    }
    const u8* at_;
    std::size_t left_;
};

/// The console's state. Memory that the cartridge does not have, or that is still zero, is left out.
void write_machine(Writer& w, const Machine& m, const Cartridge& c);
void read_machine(Reader& r, Machine& m, const Cartridge& c);

/// A whole snapshot: magic, version, the game's hash, the console, a checksum.
std::vector<u8> save_machine(const Machine& m, const Cartridge& c);
void load_machine(const std::vector<u8>& blob, Machine& m, const Cartridge& c);

/// The frame around any snapshot: `kind` tells the sorts apart.
std::vector<u8> seal(Writer& body, const Cartridge& c, u32 kind);
Reader open(const std::vector<u8>& blob, const Cartridge& c, u32 kind);

}  // namespace wz
