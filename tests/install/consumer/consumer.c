/* A user's C program: compiles as C11 against the installed header and opens and closes a device. */
#include <sdr/sdr.h>
#include <stdio.h>

int main(void) {
  struct sdr_dev_attr attributes = {.num_channels = 1, .log_max_qps = 0};
  struct sdr_context* context = sdr_context_create("udp", &attributes);
  if (context == NULL) {
    fprintf(stderr, "sdr_context_create(\"udp\") gave no context\n");
    return 1;
  }
  return sdr_context_destroy(context) == SDR_SUCCESS ? 0 : 1;
}
