// A ByteStream as Asio's AsyncStream, for what Beast puts on top of one. Of net/ alone.
//
// Owned by the Beast stream above; reactor thread only. An error keeps its own words in failure().
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/role.hpp>

#include "vk-provider/async/byte_stream.hpp"

namespace spillway::net {

class ByteStreamLayer {
 public:
  using executor_type = boost::asio::any_io_executor;

  ByteStreamLayer(executor_type executor, async::ByteStreamPtr inner)
      : executor_(std::move(executor)), inner_(std::move(inner)) {}

  executor_type get_executor() { return executor_; }
  const std::optional<base::Error>& failure() const { return failure_; }
  void close() { inner_.reset(); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& b) { start(read_some(b), std::move(handler)); }, token, buffers);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& b) { start(write_all(join(b)), std::move(handler)); }, token, buffers);
  }

 private:
  struct Moved {
    boost::system::error_code ec;
    std::size_t bytes = 0;
  };

  template <class Handler>
  void start(boost::asio::awaitable<Moved> work, Handler handler) {
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    auto done = [h = std::move(handler)](const std::exception_ptr& cancelled, Moved moved) mutable {
      if (cancelled) moved = Moved{boost::asio::error::operation_aborted, 0};
      std::move(h)(moved.ec, moved.bytes);
    };
    boost::asio::co_spawn(executor_, std::move(work), boost::asio::bind_cancellation_slot(slot, std::move(done)));
  }

  template <class Buffers>
  static std::string join(const Buffers& buffers) {
    std::string out(boost::asio::buffer_size(buffers), '\0');
    boost::asio::buffer_copy(boost::asio::buffer(out), buffers);
    return out;
  }

  template <class Buffers>
  boost::asio::awaitable<Moved> read_some(Buffers buffers) {
    if (taken_ == input_.size()) {
      input_ = std::string();
      taken_ = 0;
      if (!inner_) co_return Moved{boost::asio::error::bad_descriptor, 0};
      auto bytes = co_await inner_->read(base::Deadline::max());
      if (!bytes) co_return failed(std::move(bytes.error()));
      if (bytes->empty()) co_return Moved{boost::asio::error::eof, 0};
      input_ = std::move(*bytes);
    }
    const std::size_t n = boost::asio::buffer_copy(buffers, boost::asio::buffer(input_) + taken_);
    taken_ += n;
    co_return Moved{{}, n};
  }

  boost::asio::awaitable<Moved> write_all(std::string bytes) {
    const std::size_t size = bytes.size();
    if (!inner_) co_return Moved{boost::asio::error::bad_descriptor, 0};
    auto written = co_await inner_->write(std::move(bytes), base::Deadline::max());
    if (!written) co_return failed(std::move(written.error()));
    co_return Moved{{}, size};
  }

  Moved failed(base::Error error) {
    failure_ = std::move(error);
    return Moved{boost::asio::error::connection_reset, 0};
  }

  executor_type executor_;
  async::ByteStreamPtr inner_;
  std::string input_;
  std::size_t taken_ = 0;  // of input_
  std::optional<base::Error> failure_;
};

// What Beast asks of a layer of one's own. Whoever owns the stream closes the connection; there is nothing to wait for.
inline void beast_close_socket(ByteStreamLayer& layer) { layer.close(); }

inline void teardown(boost::beast::role_type, ByteStreamLayer&, boost::system::error_code& ec) { ec = {}; }

template <class Handler>
void async_teardown(boost::beast::role_type, ByteStreamLayer& layer, Handler&& handler) {
  boost::asio::post(layer.get_executor(),
                    [h = std::forward<Handler>(handler)]() mutable { std::move(h)(boost::system::error_code()); });
}

}  // namespace spillway::net
