// Runs in the sandbox, by exec, for one connection: joins a port of the pod to its own standard input and output.
//
//   /relay PORT
//
// It connects to 127.0.0.1, then to [::1], and writes one byte: 0, or the errno of the first attempt, and then ends.
// From there on both pipes carry frames: a length of two bytes (the higher first), and so many bytes; a length of 0 is
// the end of that direction. The pipes themselves never end in the middle of a connection, because nobody could tell
// that from the death of the daemon: standard input that ends means that nobody is there any more.
//
// x86_64 Linux, no libc. A frame of at most PIPE_BUF bytes goes into a pipe that has room all at once, and a socket is
// never waited for but by poll: so neither direction holds up the other.
// make_sandbox_relay.sh turns this file into sandbox_relay.inc.

typedef unsigned char byte;
typedef unsigned short u16;
typedef long word;

enum { SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_poll = 7, SYS_socket = 41, SYS_connect = 42, SYS_sendto = 44 };
enum { SYS_shutdown = 48, SYS_setsockopt = 54, SYS_exit_group = 231 };
enum { AF_INET = 2, AF_INET6 = 10, SOCK_STREAM = 1, SHUT_WR = 1, MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000 };
enum { SOL_SOCKET = 1, SO_SNDTIMEO = 21, IPPROTO_TCP = 6, TCP_NODELAY = 1 };
enum { POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, EINTR = 4, EAGAIN = 11, EINVAL = 22 };
enum { PIPE_BUF = 4096, HEADER = 2, INPUT = 16384, CONNECT_SECONDS = 10 };

static word call(word n, word a, word b, word c, word d, word e, word f) {
  register word r10 __asm__("r10") = d;
  register word r8 __asm__("r8") = e;
  register word r9 __asm__("r9") = f;
  word result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static word call3(word n, word a, word b, word c) { return call(n, a, b, c, 0, 0, 0); }

__attribute__((noreturn)) static void leave(int code) {
  call3(SYS_exit_group, code, 0, 0);
  __builtin_unreachable();
}

static u16 big_endian(u16 n) { return (u16)(n << 8 | n >> 8); }

struct address_v4 {
  u16 family, port;
  byte host[4], zero[8];
};
struct address_v6 {
  u16 family, port;
  unsigned flow;
  byte host[16];
  unsigned scope;
};
struct waiting {
  int fd;
  short events, revents;
};

/// A connected socket, or the errno below zero. A full backlog answers nothing: hence the time limit.
static word connect_to(word family, const void* address, word size) {
  const word limit[2] = {CONNECT_SECONDS, 0};
  const int yes = 1;
  const word fd = call3(SYS_socket, family, SOCK_STREAM, 0);
  if (fd < 0) return fd;
  call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (word)limit, sizeof(limit), 0);
  const word failed = call3(SYS_connect, fd, (word)address, size);
  if (failed < 0) {
    call3(SYS_close, fd, 0, 0);
    return failed;
  }
  call(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, (word)&yes, sizeof(yes), 0);
  return fd;
}

static word connect_port(u16 port) {
  struct address_v4 v4;
  struct address_v6 v6;
  v4.family = AF_INET;
  v4.port = v6.port = big_endian(port);
  for (int i = 0; i < 4; ++i) v4.host[i] = i == 0 ? 127 : i == 3;
  for (int i = 0; i < 8; ++i) v4.zero[i] = 0;
  v6.family = AF_INET6;
  v6.flow = v6.scope = 0;
  for (int i = 0; i < 16; ++i) v6.host[i] = i == 15;
  const word first = connect_to(AF_INET, &v4, sizeof(v4));
  if (first >= 0) return first;
  const word second = connect_to(AF_INET6, &v6, sizeof(v6));
  return second >= 0 ? second : first;
}

static u16 parse_port(const char* text) {
  unsigned port = 0;
  for (; *text >= '0' && *text <= '9' && port < 65536; ++text) port = port * 10 + (unsigned)(*text - '0');
  return *text == 0 && port < 65536 ? (u16)port : 0;
}

/// What came from standard input and is not sent yet.
struct inbound {
  byte bytes[INPUT];
  word begin, end;
  word left;  // bytes of the frame that are still to come
  int high;   // the first byte of a header, or -1
  int over;   // the frame that ends the direction has come
};

/// Takes headers off, until the buffer is empty or begins with bytes to send.
static void unwrap(struct inbound* in, word fd) {
  while (in->begin < in->end && in->left == 0 && !in->over) {
    const int b = in->bytes[in->begin++];
    if (in->high < 0) {
      in->high = b;
      continue;
    }
    in->left = in->high << 8 | b;
    in->high = -1;
    if (in->left > 0) continue;
    in->over = 1;
    call3(SYS_shutdown, fd, SHUT_WR, 0);
  }
  if (in->over) in->begin = in->end;  // nothing may follow
}

static void take_input(struct inbound* in, word fd) {
  const word n = call3(SYS_read, 0, (word)in->bytes, INPUT);
  if (n == -EINTR) return;
  if (n <= 0) leave(1);
  in->begin = 0;
  in->end = n;
  unwrap(in, fd);
}

static void send_input(struct inbound* in, word fd) {
  const word there = in->end - in->begin;
  const word size = there < in->left ? there : in->left;
  const word n = call(SYS_sendto, fd, (word)&in->bytes[in->begin], size, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
  if (n == -EAGAIN || n == -EINTR) return;
  if (n < 0) leave(1);
  in->begin += n;
  in->left -= n;
  unwrap(in, fd);
}

/// A frame that waits for room in standard output.
struct outbound {
  byte bytes[PIPE_BUF];
  word size;
  int over;
};

static void receive(struct outbound* out, word fd) {
  const word n = call3(SYS_read, fd, (word)&out->bytes[HEADER], PIPE_BUF - HEADER);
  if (n == -EINTR || n == -EAGAIN) return;
  if (n < 0) leave(1);  // a reset is no end
  out->bytes[0] = (byte)(n >> 8);
  out->bytes[1] = (byte)n;
  out->size = HEADER + n;
  out->over = n == 0;
}

static void write_frame(struct outbound* out) {
  for (word done = 0; done < out->size;) {
    const word n = call3(SYS_write, 1, (word)&out->bytes[done], out->size - done);
    if (n == -EINTR) continue;
    if (n <= 0) leave(1);
    done += n;
  }
  out->size = 0;
}

static void relay(word fd) {
  struct inbound in;
  struct outbound out;
  in.begin = in.end = in.left = in.over = 0;
  in.high = -1;
  out.size = out.over = 0;
  while (!in.over || !out.over || out.size > 0) {
    struct waiting waits[3];
    const int to_send = in.begin < in.end;
    waits[0].fd = 0;
    waits[0].events = to_send ? 0 : POLLIN;
    waits[1].fd = out.size > 0 ? 1 : -1;
    waits[1].events = POLLOUT;
    waits[2].events = (short)((to_send ? POLLOUT : 0) | (out.size == 0 && !out.over ? POLLIN : 0));
    waits[2].fd = waits[2].events ? (int)fd : -1;
    for (int i = 0; i < 3; ++i) waits[i].revents = 0;
    if (call3(SYS_poll, (word)waits, 3, -1) < 0) continue;
    const int socket_ready = waits[2].revents;
    if (to_send && socket_ready & (POLLOUT | POLLERR)) {
      send_input(&in, fd);
    } else if (to_send && waits[0].revents & (POLLHUP | POLLERR)) {
      leave(1);  // nobody there, and the port takes nothing
    }
    if (!to_send && waits[0].revents) take_input(&in, fd);
    if (out.size == 0 && !out.over && socket_ready & (POLLIN | POLLHUP | POLLERR)) receive(&out, fd);
    if (waits[1].revents) write_frame(&out);
  }
}

/// `stack` as the kernel leaves it: argc, argv, a null.
__attribute__((used, noreturn)) static void run(const word* stack) {
  const u16 port = stack[0] == 2 ? parse_port((const char*)stack[2]) : 0;
  const word fd = port == 0 ? -EINVAL : connect_port(port);
  const byte status = fd < 0 ? (byte)-fd : 0;
  if (call3(SYS_write, 1, (word)&status, 1) == 1 && fd >= 0) relay(fd);
  leave(fd < 0);
}

__attribute__((naked)) void _start(void) { __asm__("mov %rsp, %rdi\n and $-16, %rsp\n call run"); }
