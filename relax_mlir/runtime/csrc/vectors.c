/* Vectors whose length a machine decides (SVE, RVV), where code is compiled for one length. */

#ifdef __riscv
enum { SCALE_BYTES = 8, MAY_BE_LONGER = 1 };
#else
enum { SCALE_BYTES = 16, MAY_BE_LONGER = 0 };
#endif

int32_t rx_check_vectors(RxContext* context, int64_t bytes, int64_t scale) {
  int64_t known = scale * SCALE_BYTES;
  if (known == bytes || (MAY_BE_LONGER && known > bytes)) return 0;
  clear_error(context);
  say(context,
      "the code is compiled for vectors of %lld bytes, but those of this machine have %lld; append "
      "'+vector-bytes=16' to the target's name to compile for any length",
      (long long)bytes, (long long)known);
  return 1;
}
