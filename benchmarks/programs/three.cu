// Three managed arrays: one is read once a launch, one is gathered, one is written.
#include <cstdio>
__global__ void gather(const float* table, const unsigned* index, float* out, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[index[i]];
}
int main() {
    size_t n = 1u << 24;
    float *table, *out;
    unsigned* index;
    cudaMallocManaged(&index, n * 4);      // index
    cudaMallocManaged(&table, 2 * n * 4);  // table
    cudaMallocManaged(&out, n * 4);        // out
    for (size_t i = 0; i < 2 * n; i++) table[i] = i % 7;
    for (size_t i = 0; i < n; i++) index[i] = (unsigned)(i * 2654435761u) % (2 * n);
    for (int k = 0; k < 5; k++) gather<<<(n + 255) / 256, 256>>>(table, index, out, n);
    cudaDeviceSynchronize();
    double sum = 0;
    for (size_t i = 0; i < n; i += 1000) sum += out[i];
    printf("checksum %.0f\n", sum);
    return 3;
}
