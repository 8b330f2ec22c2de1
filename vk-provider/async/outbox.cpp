#include "vk-provider/async/outbox.hpp"

#include <utility>

namespace spillway::async {

std::shared_ptr<Outbox::Entry> Outbox::add(std::string message) {
  auto entry = std::make_shared<Entry>();
  entry->message = std::move(message);
  queue_.push_back(entry);
  sender_.wake();
  return entry;
}

void Outbox::post(std::string message) {
  if (!failed_ && !closed_) add(std::move(message));
}

Task<void> Outbox::send(std::shared_ptr<Outbox> outbox, std::string message, base::Deadline deadline) {
  if (outbox->failed_) co_return base::fail(*outbox->failed_);
  if (outbox->closed_) co_return base::fail(*outbox->closed_);
  const std::shared_ptr<Entry> entry = outbox->add(std::move(message));
  co_return co_await wait_for(outbox, entry, deadline);
}

Task<void> Outbox::wait_for(std::shared_ptr<Outbox> outbox, std::shared_ptr<Entry> entry, base::Deadline deadline) {
  while (!entry->done) {
    if (outbox->failed_) co_return base::fail(*outbox->failed_);
    const bool in_time = co_await entry->writer.wait(outbox->timers_, deadline);
    if (!in_time && !entry->done && !outbox->failed_) {
      co_return base::fail(base::ErrorKind::kDeadline, "the peer did not take what was written to it in time");
    }
  }
  co_return base::Result<void>();
}

boost::asio::awaitable<void> Outbox::flush(std::shared_ptr<Outbox> outbox) {
  if (outbox->waiting() == 0 || outbox->failed_) co_return;
  const std::shared_ptr<Entry> mark = outbox->add({});
  static_cast<void>(co_await wait_for(outbox, mark, base::Deadline::max()));
}

boost::asio::awaitable<std::optional<std::string>> Outbox::next(std::shared_ptr<Outbox> outbox) {
  for (;;) {
    while (!outbox->queue_.empty()) {
      outbox->current_ = std::move(outbox->queue_.front());
      outbox->queue_.pop_front();
      if (!outbox->current_->message.empty()) co_return std::move(outbox->current_->message);
      outbox->written();
    }
    if (outbox->closed_ || outbox->failed_) co_return std::nullopt;
    co_await outbox->sender_.wait(outbox->timers_, base::Deadline::max());
  }
}

void Outbox::written() {
  if (current_ == nullptr) return;
  const std::shared_ptr<Entry> entry = std::exchange(current_, nullptr);
  entry->done = true;
  entry->writer.wake();
}

void Outbox::close(base::Error why) {
  if (!closed_) closed_ = std::move(why);
  sender_.wake();
}

void Outbox::fail(const base::Error& why) {
  if (failed_) return;
  failed_ = why;
  for (const std::shared_ptr<Entry>& entry : queue_) entry->writer.wake();
  if (current_) current_->writer.wake();
  queue_.clear();
  current_.reset();
  sender_.wake();
}

}  // namespace spillway::async
