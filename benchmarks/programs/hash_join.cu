// Hash join: build a table of keys, probe it with a larger column. Argument: log2 of the rows probed.
#include <cstdio>
#include <cstdlib>
__device__ unsigned slot_of(unsigned key, unsigned mask) { return key * 2654435761u & mask; }
__global__ void build(const unsigned* keys, unsigned n, unsigned* table, unsigned mask) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (unsigned at = slot_of(keys[i], mask); atomicCAS(table + at, 0u, keys[i]) != 0u;)
            at = (at + 1) & mask;
}
__global__ void probe(const unsigned* rows, size_t n, const unsigned* table, unsigned mask,
                      unsigned* matches) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * (size_t)blockDim.x) {
        unsigned at = slot_of(rows[i], mask);
        while (table[at] && table[at] != rows[i]) at = (at + 1) & mask;
        matches[i] = table[at] == rows[i];
    }
}
int main(int argc, char** argv) {
    size_t n = (size_t)1 << (argc > 1 ? atoi(argv[1]) : 26);
    unsigned keys_n = n / 8, mask = n / 2 - 1;
    unsigned *keys, *rows, *table, *matches;
    cudaMallocManaged(&keys, keys_n * 4ul);       // keys
    cudaMallocManaged(&rows, n * 4);              // rows
    cudaMallocManaged(&table, (mask + 1ul) * 4);  // table
    cudaMallocManaged(&matches, n * 4);           // matches
    for (unsigned i = 0; i < keys_n; i++) keys[i] = 2 * i + 1;
    for (size_t i = 0; i < n; i++) rows[i] = (unsigned)(i * 40503u) % n + 1;
    cudaMemset(table, 0, (mask + 1ul) * 4);
    build<<<1024, 256>>>(keys, keys_n, table, mask);
    for (int k = 0; k < 5; k++) probe<<<4096, 256>>>(rows, n, table, mask, matches);
    cudaDeviceSynchronize();
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += matches[i];
    printf("%zu\n", found);
}
