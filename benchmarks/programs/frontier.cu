// Breadth-first search, level by level, on a random graph of 16 arcs per vertex. Argument: log2 of the vertices.
#include <cstdio>
#include <cstdlib>
__global__ void visit(const size_t* offsets, const unsigned* targets, int* distance, unsigned n,
                      int level, int* changed) {
    unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || distance[v] != level) return;
    for (size_t j = offsets[v]; j < offsets[v + 1]; j++)
        if (distance[targets[j]] < 0) distance[targets[j]] = level + 1, *changed = 1;
}
int main(int argc, char** argv) {
    unsigned n = 1u << (argc > 1 ? atoi(argv[1]) : 22), degree = 16, state = 1;
    size_t* offsets;
    unsigned* targets;
    int *distance, *changed;
    cudaMallocManaged(&offsets, (n + 1ul) * 8);         // offsets
    cudaMallocManaged(&targets, (size_t)n * degree * 4);  // targets
    cudaMallocManaged(&distance, n * 4ul);              // distance
    cudaMallocHost(&changed, 4);
    for (size_t v = 0; v <= n; v++) offsets[v] = v * degree;
    for (size_t j = 0; j < (size_t)n * degree; j++)
        targets[j] = (state = state * 1664525u + 1013904223u) >> 8 & (n - 1);
    for (unsigned v = 0; v < n; v++) distance[v] = -1;
    distance[0] = 0;
    *changed = 1;
    for (int level = 0; *changed; level++) {
        *changed = 0;
        visit<<<(n + 255) / 256, 256>>>(offsets, targets, distance, n, level, changed);
        cudaDeviceSynchronize();
    }
    long long sum = 0;
    for (unsigned v = 0; v < n; v++) sum += distance[v];
    printf("%lld\n", sum);
}
