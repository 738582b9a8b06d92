// Five-point stencil on a square, two managed arrays that change places. Arguments: side of the square, steps.
#include <cstdio>
#include <cstdlib>
__global__ void step(const float* from, float* to, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x <= 0 || y <= 0 || x >= side - 1 || y >= side - 1) return;
    size_t i = (size_t)y * side + x;
    to[i] = 0.2f * (from[i] + from[i - 1] + from[i + 1] + from[i - side] + from[i + side]);
}
int main(int argc, char** argv) {
    int side = argc > 1 ? atoi(argv[1]) : 8192, steps = argc > 2 ? atoi(argv[2]) : 20;
    size_t n = (size_t)side * side;
    float *a, *b;
    cudaMallocManaged(&a, n * sizeof *a);  // a
    cudaMallocManaged(&b, n * sizeof *b);  // b
    for (size_t i = 0; i < n; i++) a[i] = b[i] = i % 11;
    dim3 block(32, 8), grid((side + 31) / 32, (side + 7) / 8);
    for (int k = 0; k < steps; k++) {
        step<<<grid, block>>>(a, b, side);
        float* c = a;
        a = b, b = c;
    }
    cudaDeviceSynchronize();
    double sum = 0;
    for (size_t i = 0; i < n; i += 1009) sum += a[i];
    printf("%.3f\n", sum);
}
