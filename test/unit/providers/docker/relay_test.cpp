// Both ends of a dialled connection: the frames on our side, and the program that runs in the sandbox.
#include "providers/docker/relay.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cerrno>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/docker/sandbox_image.hpp"

using namespace spillway::providers::docker;

namespace {

constexpr int kPatience = 5000;  // milliseconds

std::string relay_program() {
  const std::string tar = sandbox_image_tar();
  for (size_t at = 0; tar[at] != '\0';) {
    const size_t size = std::stoul(tar.substr(at + 124, 11), nullptr, 8);
    if (std::string(tar.c_str() + at) == "relay") return tar.substr(at + 512, size);
    at += 512 + (size + 511) / 512 * 512;
  }
  return "";
}

class Listener {
 public:
  explicit Listener(int family = AF_INET, int backlog = 8) : fd_(::socket(family, SOCK_STREAM, 0)) {
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_v6 = family == AF_INET6;
    auto* const address = is_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
    socklen_t size = is_v6 ? sizeof(v6) : sizeof(v4);
    if (::bind(fd_, address, size) != 0 || (backlog > 0 && ::listen(fd_, backlog) != 0)) {
      throw std::runtime_error("no listener");
    }
    ::getsockname(fd_, address, &size);
    port_ = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const { return port_; }
  int accept() const { return ::accept(fd_, nullptr, nullptr); }

 private:
  int fd_;
  int port_ = 0;
};

/// The program, with pipes for its standard input and output.
class Relay {
 public:
  explicit Relay(const std::string& port) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0) throw std::runtime_error("no pipe");
    const int memory = ::memfd_create("relay", 0);
    const std::string bytes = relay_program();
    if (::write(memory, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("no program");
    }
    const std::string path = "/proc/self/fd/" + std::to_string(memory);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      ::execl(path.c_str(), "relay", port.c_str(), static_cast<char*>(nullptr));
      ::_exit(99);
    }
    for (const int fd : {in[0], out[1], memory}) ::close(fd);
    input_ = in[1];
    output_ = out[0];
  }
  explicit Relay(int port) : Relay(std::to_string(port)) {}
  ~Relay() {
    end_input();
    ::close(output_);
    if (child_ > 0) static_cast<void>(exit_code());
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void write(const std::string& bytes) const {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(input_, bytes.data() + done, bytes.size() - done);
      if (n <= 0) throw std::runtime_error("the relay takes nothing");
      done += static_cast<size_t>(n);
    }
  }
  void end_input() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
  }
  /// Empty at the end.
  std::string read() const {
    pollfd wait{output_, POLLIN, 0};
    if (::poll(&wait, 1, kPatience) != 1) throw std::runtime_error("the relay says nothing");
    std::string bytes(64 * 1024, '\0');
    const ssize_t n = ::read(output_, bytes.data(), bytes.size());
    bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return bytes;
  }
  int exit_code() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = 0;
  int input_ = -1;
  int output_ = -1;
};

std::string receive(int fd) {
  std::string bytes(64 * 1024, '\0');
  const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return bytes;
}

}  // namespace

TEST_CASE("docker relay: frames are cut at 64 KiB and put together again, however they come") {
  CHECK(relay_frames("") == "");
  CHECK(relay_frames("ab") == std::string("\0\2ab", 4));
  CHECK(relay_end() == std::string("\0\0", 2));
  const std::string bytes = std::string(70'000, 'x') + "y";
  const std::string frames = relay_frames(bytes);
  CHECK(frames.size() == bytes.size() + 4);
  const size_t step = GENERATE(size_t{1}, size_t{3}, size_t{65'537}, size_t{100'000});
  RelayReader reader;
  std::string out;
  for (size_t at = 0; at < frames.size(); at += step) out += reader.feed(frames.substr(at, step));
  CHECK(out == bytes);
  CHECK_FALSE(reader.over());
  CHECK(reader.feed(relay_end() + "more") == "");
  CHECK(reader.over());
}

TEST_CASE("docker relay program: bytes go both ways, and each direction ends by itself") {
  const Listener listener(GENERATE(AF_INET, AF_INET6));
  Relay relay(listener.port());
  CHECK(relay.read() == std::string(1, '\0'));
  const int peer = listener.accept();
  relay.write(relay_frames("hello"));
  CHECK(receive(peer) == "hello");
  CHECK(::send(peer, "world", 5, 0) == 5);
  CHECK(relay.read() == relay_frames("world"));
  relay.write(relay_end());
  CHECK(receive(peer) == "");
  CHECK(::send(peer, "after", 5, 0) == 5);
  CHECK(relay.read() == relay_frames("after"));
  ::close(peer);
  CHECK(relay.read() == relay_end());
  CHECK(relay.read() == "");
  CHECK(relay.exit_code() == 0);
}

TEST_CASE("docker relay program: a peer that takes nothing does not hold up what it says") {
  const Listener listener;
  Relay relay(listener.port());
  CHECK(relay.read() == std::string(1, '\0'));
  const int peer = listener.accept();
  std::thread writer([&relay] {
    const std::string piece = relay_frames(std::string(60'000, 'x'));
    for (int i = 0; i < 200; ++i) relay.write(piece);
    relay.write(relay_end());
  });
  CHECK(::send(peer, "first", 5, 0) == 5);
  CHECK(relay.read() == relay_frames("first"));
  size_t came = 0;
  for (std::string bytes = receive(peer); !bytes.empty(); bytes = receive(peer)) came += bytes.size();
  writer.join();
  CHECK(came == 200 * 60'000);
  ::close(peer);
}

TEST_CASE("docker relay program: what cannot be connected to is told by its errno") {
  const Listener deaf(AF_INET, 0);  // bound, and does not listen
  Relay refused(deaf.port());
  CHECK(refused.read() == std::string(1, static_cast<char>(ECONNREFUSED)));
  CHECK(refused.read() == "");
  CHECK(refused.exit_code() == 1);
  for (const std::string port : {"0", "65536", "x", "80x", ""}) {
    Relay invalid(port);
    CHECK(invalid.read() == std::string(1, static_cast<char>(EINVAL)));
    CHECK(invalid.exit_code() == 1);
  }
}

TEST_CASE("docker relay program: it ends with its input, whatever the peer does") {
  const Listener listener;
  Relay relay(listener.port());
  CHECK(relay.read() == std::string(1, '\0'));
  const int peer = listener.accept();
  SECTION("in the middle") { relay.write(relay_frames("x")); }
  SECTION("after its own end") { relay.write(relay_frames("x") + relay_end()); }
  relay.end_input();
  CHECK(relay.exit_code() == 1);
  CHECK(receive(peer) == "x");
  CHECK(receive(peer) == "");
  ::close(peer);
}

TEST_CASE("docker relay program: a reset is no end") {
  const Listener listener;
  Relay relay(listener.port());
  CHECK(relay.read() == std::string(1, '\0'));
  const int peer = listener.accept();
  const linger at_once{1, 0};
  ::setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::close(peer);
  CHECK(relay.read() == "");
  CHECK(relay.exit_code() == 1);
}
