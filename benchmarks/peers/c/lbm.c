// A step of a lattice Boltzmann method, D3Q19: each cell pulls densities and relaxes them.
enum { Q = 19 };

static const int Z[Q] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
static const int Y[Q] = {0, 0, 0, 1, 1, 1, -1, -1, -1, 0, 0, 0, 1, -1, 0, 0, 0, 1, -1};
static const int X[Q] = {0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 0, 0, 1, -1, 0, 0};

static long clamped(long i, long extent) { return i < 0 ? 0 : i < extent ? i : extent - 1; }

static inline void cell(const float *const pulled[Q], float *restrict out) {
  float mass = 0, uz = 0, uy = 0, ux = 0, f[Q];
#pragma GCC unroll 19
  for (int q = 0; q < Q; q++) {
    f[q] = *pulled[q];
    mass += f[q];
    uz += Z[q] * f[q];
    uy += Y[q] * f[q];
    ux += X[q] * f[q];
  }
  float scale = 1 / mass;
  uz *= scale, uy *= scale, ux *= scale;
  float rest = 1 - 1.5f * (uz * uz + uy * uy + ux * ux);
#pragma GCC unroll 19
  for (int q = 0; q < Q; q++) {
    int size = Z[q] * Z[q] + Y[q] * Y[q] + X[q] * X[q];
    float weight = size == 0 ? 1 / 3.f : size == 1 ? 1 / 18.f : 1 / 36.f;
    float along = Z[q] * uz + Y[q] * uy + X[q] * ux;
    out[q] = f[q] * (1 - 1.2f) + 1.2f * weight * mass * (rest + along * (3 + 4.5f * along));
  }
}

void lbm(long d, long h, long w, const float *restrict f, float *restrict out) {
#pragma omp parallel for collapse(2) schedule(static)
  for (long z = 0; z < d; z++)
    for (long y = 0; y < h; y++)
      for (long x = 0; x < w; x++) {
        const float *pulled[Q];
        int inside = z && y && x && z + 1 < d && y + 1 < h && x + 1 < w;
        const float *own = f + ((z * h + y) * w + x) * Q;
#pragma GCC unroll 19
        for (int q = 0; q < Q; q++)
          pulled[q] = inside ? own - ((Z[q] * h + Y[q]) * w + X[q]) * Q + q
                             : f + ((clamped(z - Z[q], d) * h + clamped(y - Y[q], h)) * w +
                                    clamped(x - X[q], w)) * Q + q;
        cell(pulled, out + ((z * h + y) * w + x) * Q);
      }
}
