/* A truthful stream server for measuring load clients: one thread, epoll and a timer, and a log of when each
   chunk was truly handed to the kernel (CLOCK_MONOTONIC). Any POST is answered with max_tokens SSE chunks, the
   first TTFT after the request was read, the others GAP apart. Usage: server PORT TTFT_US GAP_US LOG [CERT KEY]
   Built with -DWITH_TLS it speaks TLS where it is given a certificate; a chunk is stamped before it is encrypted. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
static SSL_CTX *tls;
#endif

enum { MAX_FDS = 65536, IN_BYTES = 1 << 16, EVENTS = 512, ID_BYTES = 48 };

typedef struct {
  char in[IN_BYTES];
  int used, chat, total, sent, fd;
  int64_t due;
  char id[ID_BYTES];
  int64_t received, *stamps;
#ifdef WITH_TLS
  SSL *ssl;
#endif
} Conn;

typedef struct {
  char id[ID_BYTES];
  int64_t received, *stamps;
  int count;
} Entry;

static Conn *conns[MAX_FDS];
static Conn **heap;
static int heap_size, heap_room, epoll_fd, timer_fd;
static Entry *entries;
static size_t entry_count, entry_room;
static int64_t ttft_ns, gap_ns, sequence;
static volatile sig_atomic_t ended;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void on_signal(int number) {
  (void)number;
  ended = 1;
}

static void *room_for(void *array, size_t count, size_t *room, size_t size) {
  if (count < *room) return array;
  *room = *room ? *room * 2 : 1024;
  array = realloc(array, *room * size);
  if (!array) abort();
  return array;
}

static void push(Conn *c) {
  size_t room = heap_room;
  heap = room_for(heap, heap_size, &room, sizeof *heap);
  heap_room = room;
  int i = heap_size++;
  while (i && heap[(i - 1) / 2]->due > c->due) heap[i] = heap[(i - 1) / 2], i = (i - 1) / 2;
  heap[i] = c;
}

static Conn *pop(void) {
  Conn *top = heap[0], *last = heap[--heap_size];
  int i = 0;
  for (;;) {
    int child = 2 * i + 1;
    if (child >= heap_size) break;
    if (child + 1 < heap_size && heap[child + 1]->due < heap[child]->due) child++;
    if (heap[child]->due >= last->due) break;
    heap[i] = heap[child], i = child;
  }
  heap[i] = last;
  return top;
}

static void forget(Conn *c) {
  for (int i = 0; i < heap_size; i++)
    if (heap[i] == c) { /* rare: a client that hung up within a stream; rebuild by taking all others out */
      Conn **old = malloc(heap_size * sizeof *old);
      int count = heap_size;
      memcpy(old, heap, count * sizeof *old);
      heap_size = 0;
      for (int k = 0; k < count; k++)
        if (old[k] != c) push(old[k]);
      free(old);
      break;
    }
#ifdef WITH_TLS
  if (c->ssl) SSL_free(c->ssl);
#endif
  close(c->fd);
  conns[c->fd] = NULL;
  free(c->stamps);
  free(c);
}

static ssize_t put(Conn *c, const char *out, size_t n) {
#ifdef WITH_TLS
  if (c->ssl) return SSL_write(c->ssl, out, (int)n);
#endif
  return write(c->fd, out, n);
}

static ssize_t take(Conn *c, char *in, size_t n) {
#ifdef WITH_TLS
  if (c->ssl) {
    ERR_clear_error(); /* what another connection left there would be taken for this one's */
    int got = SSL_read(c->ssl, in, (int)n);
    if (got > 0) return got;
    if (SSL_get_error(c->ssl, got) != SSL_ERROR_WANT_READ) return 0;
    errno = EAGAIN;
    return -1;
  }
#endif
  return read(c->fd, in, n);
}

static int chunk(char *out, const char *payload) {
  return sprintf(out, "%zx\r\n%s\r\n", strlen(payload), payload);
}

static void send_token(Conn *c) {
  char out[2048], payload[512];
  int n = 0, last = c->sent + 1 == c->total;
  const char *finish = last ? "\"length\"" : "null";
  if (c->chat)
    sprintf(payload, "data: {\"id\":\"cmpl-%s\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"mock\","
            "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" tok\"},\"logprobs\":null,\"finish_reason\":%s}]}\n\n", c->id, finish);
  else
    sprintf(payload, "data: {\"id\":\"cmpl-%s\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"mock\","
            "\"choices\":[{\"index\":0,\"text\":\" tok\",\"logprobs\":null,\"finish_reason\":%s}]}\n\n", c->id, finish);
  n += chunk(out, payload);
  if (last) {
    sprintf(payload, "data: {\"id\":\"cmpl-%s\",\"object\":\"%s\",\"created\":1700000000,\"model\":\"mock\",\"choices\":[],\"usage\":"
            "{\"prompt_tokens\":8,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", c->id,
            c->chat ? "chat.completion.chunk" : "text_completion", c->total, c->total + 8);
    n += chunk(out + n, payload);
    n += chunk(out + n, "data: [DONE]\n\n");
    n += sprintf(out + n, "0\r\n\r\n");
  }
  c->stamps[c->sent++] = now_ns();
  if (put(c, out, n) != n) { forget(c); return; }
  if (!last) { c->due += gap_ns; push(c); return; }
  entries = room_for(entries, entry_count, &entry_room, sizeof *entries);
  Entry *e = &entries[entry_count++];
  memcpy(e->id, c->id, ID_BYTES);
  e->received = c->received, e->stamps = c->stamps, e->count = c->total;
  c->stamps = NULL;
  c->total = c->sent = 0;
}

static void answer_get(Conn *c) {
  const char *body = strstr(c->in, "/models") ? "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\",\"owned_by\":\"mock\"}]}" : "{}";
  char out[512];
  int n = sprintf(out, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s", strlen(body), body);
  if (put(c, out, n) != n) return;
}

static const char *header(const char *head, const char *name) {
  const char *found = strcasestr(head, name);
  return found ? found + strlen(name) : NULL;
}

static int take_request(Conn *c) { /* 1: one request was taken off the input */
  c->in[c->used] = 0;
  char *end = strstr(c->in, "\r\n\r\n");
  if (!end) return 0;
  *end = 0;
  const char *length = header(c->in, "\r\ncontent-length:"), *id = header(c->in, "\r\nx-request-id:");
  int body = length ? atoi(length) : 0, whole = end + 4 - c->in + body;
  if (c->used < whole) { *end = '\r'; return 0; }
  if (c->in[0] == 'G') {
    answer_get(c);
  } else {
    c->received = now_ns();
    c->chat = strstr(c->in, "/chat/") != NULL;
    if (id) sscanf(id, " %47[^\r\n]", c->id); else sprintf(c->id, "n%lld", (long long)sequence++);
    char keep = end[4 + body];
    end[4 + body] = 0;
    const char *most = strstr(end + 4, "max_tokens\"");
    if (!most) most = strstr(end + 4, "max_completion_tokens\"");
    c->total = most ? atoi(strchr(most, ':') + 1) : 16;
    end[4 + body] = keep;
    c->sent = 0;
    c->stamps = malloc(c->total * sizeof *c->stamps);
    const char *head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    if (put(c, head, strlen(head)) < 0) return 0;
    c->due = c->received + ttft_ns;
    push(c);
  }
  memmove(c->in, c->in + whole, c->used - whole);
  c->used -= whole;
  return 1;
}

static void on_readable(Conn *c) {
  for (;;) {
    ssize_t n = take(c, c->in + c->used, IN_BYTES - 1 - c->used);
    if (n > 0) { c->used += n; while (!c->total && take_request(c)) {} continue; }
    if (n < 0 && errno == EAGAIN) return;
    forget(c);
    return;
  }
}

static void accept_all(int listener) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0) return;
    if (fd >= MAX_FDS) { close(fd); return; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Conn *c = calloc(1, sizeof *c);
    c->fd = fd;
#ifdef WITH_TLS
    if (tls) c->ssl = SSL_new(tls), SSL_set_fd(c->ssl, fd), SSL_set_accept_state(c->ssl);
#endif
    conns[fd] = c;
    struct epoll_event e = {EPOLLIN, {.fd = fd}};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
  }
}

static void write_log(const char *path) {
  FILE *log = fopen(path, "w");
  if (!log) { perror(path); exit(1); }
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  fprintf(log, "{\"cpu_s\":%.6f}\n", cpu);
  for (size_t i = 0; i < entry_count; i++) {
    Entry *e = &entries[i];
    fprintf(log, "{\"id\":\"%s\",\"received_ns\":%lld,\"sent_ns\":[", e->id, (long long)e->received);
    for (int k = 0; k < e->count; k++) fprintf(log, "%s%lld", k ? "," : "", (long long)e->stamps[k]);
    fputs("]}\n", log);
  }
  fclose(log);
}

int main(int argc, char **argv) {
#ifdef WITH_TLS
  if (argc == 7) {
    tls = SSL_CTX_new(TLS_server_method());
    if (!tls || SSL_CTX_use_certificate_file(tls, argv[5], SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, argv[6], SSL_FILETYPE_PEM) != 1)
      return fprintf(stderr, "%s, %s: no usable certificate and key\n", argv[5], argv[6]), 1;
    argc = 5;
  }
#endif
  if (argc != 5) return fprintf(stderr, "usage: %s PORT TTFT_US GAP_US LOG [CERT KEY]\n", argv[0]), 2;
  ttft_ns = atoll(argv[2]) * 1000, gap_ns = atoll(argv[3]) * 1000;
  signal(SIGPIPE, SIG_IGN), signal(SIGTERM, on_signal), signal(SIGINT, on_signal);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in at = {AF_INET, htons(atoi(argv[1])), {htonl(INADDR_LOOPBACK)}, {0}};
  socklen_t size = sizeof at;
  if (bind(listener, (void *)&at, size) || listen(listener, 4096)) return perror("bind"), 1;
  getsockname(listener, (void *)&at, &size);
  printf("%d\n", ntohs(at.sin_port)), fflush(stdout);
  epoll_fd = epoll_create1(0), timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct epoll_event mine = {EPOLLIN, {.fd = listener}}, timer = {EPOLLIN, {.fd = timer_fd}};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &mine), epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &timer);
  static struct epoll_event events[EVENTS];
  while (!ended) {
    while (heap_size && heap[0]->due <= now_ns()) send_token(pop());
    struct itimerspec next = {{0, 0}, {0, 0}};
    if (heap_size) next.it_value.tv_sec = heap[0]->due / 1000000000, next.it_value.tv_nsec = heap[0]->due % 1000000000;
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &next, NULL);
    int count = epoll_wait(epoll_fd, events, EVENTS, -1);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd;
      uint64_t ticks;
      if (fd == listener) accept_all(listener);
      else if (fd == timer_fd) { if (read(timer_fd, &ticks, sizeof ticks) < 0) continue; }
      else if (conns[fd]) on_readable(conns[fd]);
    }
  }
  write_log(argv[4]);
  return 0;
}
