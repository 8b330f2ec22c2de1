// Settings of jemalloc, which reads them before main (docs/adr/0007-jemalloc.md).
//
// One arena, since one thread does the work; what was freed goes back to the system after a second.
// NOLINTNEXTLINE(readability-identifier-naming,misc-use-internal-linkage): the name is jemalloc's
extern "C" const char* malloc_conf;
extern "C" const char* malloc_conf = "narenas:1,dirty_decay_ms:1000,muzzy_decay_ms:0";
