// Louvain as Rundemanen's program has it, after Dinçer's description (thesis, chapter 3): arrays in
// managed memory, vertices by degree, communities by size. All weights are 1, so each run prints
// the same. Arguments: log2 of the vertices of a graph with communities and hubs, which is made
// here, or a file (vertices, arcs and whether weights are stored, then offsets and targets, all
// int32); then where arrays go, a run for each: "managed", "device", or the groups that prefer the
// host and that the GPU maps, such as "graph,scratch". Seconds and peak bytes go to stderr.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

constexpr int THREADS = 128, TABLED_VERTICES = 90, TABLED_COMMUNITIES = 150, CHUNKS = 4096;
constexpr double LEAST_GAIN = 0.000001, LEAST_GAIN_OF_AN_ITERATION = 0.01;
struct HashItem {
    int community;
    float weight;
};
struct Graph {
    int n, arcs, *indices, *links;
    float* weights;  // null where all are 1
    __device__ float weight(int arc) const { return weights ? weights[arc] : 1.0f; }
};
struct Input {
    int n, arcs, weighted;
    std::vector<int> indices, links;
};
struct Tables {
    HashItem* items;
    const int *begins, *primes;
    int n_primes;
};

template <class... P, class... A>
void launch(void (*kernel)(P...), int blocks, A... args) {
    if (blocks > 0) kernel<<<blocks, THREADS>>>(args...);
}
int blocks_for(int n, int lanes = 1) {
    return (int)std::min(65536ll, ((long long)n * lanes + THREADS - 1) / THREADS);
}
template <class T>
T value(const T* at) {
    T found;
    cudaMemcpy(&found, at, sizeof found, cudaMemcpyDefault);
    return found;
}
std::string placement;
struct Block {
    size_t bytes;
    std::string group;
};
std::map<void*, Block> alive;
std::map<std::string, size_t> held, peaks;
// Gives an array a group, and the advice of that group.
void place(void* array, size_t bytes, const std::string& group) {
    held[alive[array].group] -= alive[array].bytes;
    alive[array] = {bytes, group};
    peaks[group] = std::max(peaks[group], held[group] += bytes);
    if (placement.find(group) == std::string::npos) return;
    const cudaMemLocation host{cudaMemLocationTypeHost, 0}, gpu{cudaMemLocationTypeDevice, 0};
    cudaMemAdvise(array, bytes, cudaMemAdviseSetPreferredLocation, host);
    cudaMemAdvise(array, bytes, cudaMemAdviseSetAccessedBy, gpu);
}
// An array of the next graph becomes one of the graph; advised ones go to the host (§3.2.2).
void swap_in(void* array) {
    place(array, alive[array].bytes, "graph");
    if (placement.find("graph") != std::string::npos)
        cudaMemPrefetchAsync(array, alive[array].bytes, {cudaMemLocationTypeHost, 0}, 0, 0);
}
void drop(std::initializer_list<void*> arrays) {
    for (void* array : arrays) {
        if (!alive.count(array)) continue;
        held[alive[array].group] -= alive[array].bytes;
        alive.erase(array);
        cudaFree(array);
    }
}
// The host writes managed memory itself.
template <class T>
void put(const std::vector<T>& from, T* to) {
    const size_t bytes = from.size() * sizeof *to;
    if (placement == "device") cudaMemcpy(to, from.data(), bytes, cudaMemcpyDefault);
    else std::copy(from.begin(), from.end(), to);
}
// The group of each array is the thesis's (§3.2.4); benchmarks read it here.
#define NEW(array, count, group)                                        \
    [&, bytes = ((size_t)(count) + 1) * sizeof *array] {                \
        placement == "device" ? cudaMalloc(&array, bytes)               \
                              : cudaMallocManaged(&array, bytes);       \
        place(array, bytes, #group);                                    \
    }()
#define EACH(i, n) \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += gridDim.x * blockDim.x)

template <class T>
__global__ void fill(T* to, int n, T with) {
    EACH(i, n) to[i] = with;
}
template <class T>
__global__ void copy(const T* from, int n, T* to) {
    EACH(i, n) to[i] = from[i];
}
__global__ void chunk_sums(const int* x, int n, int* sums) {
    EACH(t, CHUNKS) {
        int sum = 0;
        for (int i = (long long)n * t / CHUNKS; i < (long long)n * (t + 1) / CHUNKS; i++)
            sum += x[i];
        sums[t] = sum;
    }
}
__global__ void scan_sums(int* sums) {
    if (blockIdx.x + threadIdx.x) return;
    for (int t = 0, sum = 0; t <= CHUNKS; t++) {
        int own = t < CHUNKS ? sums[t] : 0;
        sums[t] = sum;
        sum += own;
    }
}
__global__ void scan_chunks(const int* x, int n, const int* sums, int* to) {
    EACH(t, CHUNKS) {
        int sum = sums[t];
        for (int i = (long long)n * t / CHUNKS; i < (long long)n * (t + 1) / CHUNKS; i++) {
            int own = x[i];
            to[i] = sum;
            sum += own;
        }
    }
    if (blockIdx.x + threadIdx.x == 0) to[n] = sums[CHUNKS];
}
int* partial;  // sums of the chunks, on the device
// Sets to[i] to the sum of what is before i, in place, too; returns the sum of all.
int scan(const int* x, int n, int* to) {
    launch(chunk_sums, 32, x, n, partial);
    launch(scan_sums, 1, partial);
    launch(scan_chunks, 32, x, n, partial, to);
    return value(to + n);
}
__global__ void in_range(const int* sizes, int n, int low, int high, int* flags) {
    EACH(i, n) flags[i] = low <= sizes[i] && sizes[i] <= high;
}
__global__ void compact(const int* sizes, int n, int low, int high, const int* places, int* to) {
    EACH(i, n) if (low <= sizes[i] && sizes[i] <= high) to[places[i]] = i;
}
// Lists those whose size is in a range; those that will have tables come by falling size.
int bucket(const int* sizes, int n, int low, int high, int* temporary, int* to, bool sorted) {
    launch(in_range, blocks_for(n), sizes, n, low, high, temporary);
    int count = scan(temporary, n, temporary);
    launch(compact, blocks_for(n), sizes, n, low, high, temporary, to);
    if (!sorted) return count;
    std::vector<int> listed(count), found(n);
    cudaMemcpy(listed.data(), to, count * 4ul, cudaMemcpyDefault);
    cudaMemcpy(found.data(), sizes, n * 4ul, cudaMemcpyDefault);
    std::stable_sort(listed.begin(), listed.end(),
                     [&](int a, int b) { return found[a] > found[b]; });
    cudaMemcpy(to, listed.data(), count * 4ul, cudaMemcpyDefault);
    return count;
}

template <int LANES>
__device__ void meet() {
    if (LANES > 32) __syncthreads();
    else
        __syncwarp(LANES == 32 ? ~0u
                               : ((1u << (LANES & 31)) - 1) << (threadIdx.x % 32 / LANES * LANES));
}
__device__ void add(HashItem* table, int slots, int community, float weight) {
    for (int at = community % slots;; at = at + 1 < slots ? at + 1 : 0) {
        int seen = atomicCAS(&table[at].community, -1, community);
        if (seen == -1 || seen == community) {
            atomicAdd(&table[at].weight, weight);
            return;
        }
    }
}
// The slots of a table of this many items: the largest prime that is not larger.
__device__ int largest_prime(const int* primes, int n, int items) {
    int low = 0;
    for (int high = n; high - low > 1;) {
        int at = (low + high) / 2;
        (primes[at] <= items ? low : high) = at;
    }
    return primes[low];
}
// Real numbers in order, as integers; at equal ones the larger tag decides.
__device__ unsigned long long ranked(float score, unsigned tag) {
    unsigned bits = __float_as_uint(score);
    return (unsigned long long)(bits ^ (bits >> 31 ? ~0u : 1u << 31)) << 32 | tag;
}
// neigh_comm and lookAtNeighboringComms: some lanes for each vertex; without slots in shared memory,
// its table is in global memory.
template <int LANES, int SLOTS>
__global__ void move(const int* listed, int count, Graph g, const int* n2c, const float* tot,
                     const int* cardinality, const float* wDegs, float m2, int* n2c_new,
                     float* tot_new, int* cardinality_new, Tables tables) {
    __shared__ HashItem shared[THREADS / LANES * (SLOTS ? SLOTS : 1)];
    __shared__ unsigned long long bests[THREADS / LANES];
    const int team = threadIdx.x / LANES, lane = threadIdx.x % LANES,
              teams = gridDim.x * (THREADS / LANES);
    HashItem* table = SLOTS ? shared + team * SLOTS : tables.items + tables.begins[blockIdx.x];
    for (int i = blockIdx.x * (THREADS / LANES) + team; i < count; i += teams) {
        const int v = listed[i], begin = g.indices[v], end = g.indices[v + 1], own = n2c[v];
        const int slots =
            SLOTS ? SLOTS : largest_prime(tables.primes, tables.n_primes, 2 * (end - begin));
        for (int s = lane; s < slots; s += LANES) table[s] = {-1, 0.0f};
        const float degree = wDegs[v], share = degree / m2;
        if (lane == 0) bests[team] = ranked(-share * (tot[own] - degree), ~0u);
        meet<LANES>();
        for (int j = begin + lane; j < end; j += LANES)
            if (g.links[j] != v) add(table, slots, n2c[g.links[j]], g.weight(j));
        meet<LANES>();
        for (int s = lane; s < slots; s += LANES) {
            const int c = table[s].community;
            if (c == own)
                atomicMax(&bests[team], ranked(table[s].weight - share * (tot[c] - degree), ~0u));
            else if (c >= 0)
                atomicMax(&bests[team], ranked(table[s].weight - share * tot[c], 0x7fffffffu - c));
        }
        meet<LANES>();
        const unsigned tag = (unsigned)bests[team];
        const int best = tag == ~0u ? own : int(0x7fffffffu - tag);
        if (lane == 0 && best != own &&
            !(cardinality[own] == 1 && cardinality[best] == 1 && best > own)) {
            n2c_new[v] = best;
            atomicAdd(tot_new + own, -degree), atomicAdd(tot_new + best, degree);
            atomicAdd(cardinality_new + own, -1), atomicAdd(cardinality_new + best, 1);
        }
        meet<LANES>();
    }
}
__global__ void commit(const int* n2c_new, const float* tot_new, const int* cardinality_new, int n,
                       int* n2c, float* tot, int* cardinality) {
    EACH(v, n) n2c[v] = n2c_new[v], tot[v] = tot_new[v], cardinality[v] = cardinality_new[v];
}
__global__ void initialize(Graph g, int* sizesOfNhoods, float* wDegs, int* n2c, int* n2c_new,
                           float* tot, float* tot_new, int* cardinality, int* cardinality_new) {
    EACH(v, g.n) {
        float degree = 0;
        for (int j = g.indices[v]; j < g.indices[v + 1]; j++) degree += g.weight(j);
        sizesOfNhoods[v] = g.indices[v + 1] - g.indices[v], wDegs[v] = tot[v] = tot_new[v] = degree;
        n2c[v] = n2c_new[v] = v, cardinality[v] = cardinality_new[v] = 1;
    }
}
__global__ void inside(Graph g, const int* n2c, float* in) {
    EACH(v, g.n) {
        float sum = 0;
        for (int j = g.indices[v]; j < g.indices[v + 1]; j++)
            if (n2c[g.links[j]] == n2c[v]) sum += g.weight(j);
        if (sum > 0) atomicAdd(in + n2c[v], sum);
    }
}
__global__ void contributions(const float* in, const float* tot, int n, double m2,
                              double* result_array) {
    EACH(c, n) result_array[c] = in[c] / m2 - tot[c] / m2 * (tot[c] / m2);
}
__global__ void reduce(const double* x, int n, double* sum) {
    __shared__ double sums[THREADS];
    double own = 0;
    for (int i = threadIdx.x; i < n; i += THREADS) own += x[i];
    sums[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int t = 1; t < THREADS; t++) own += sums[t];
        *sum = own;
    }
}

__global__ void occupied(const int* cardinality, int n, int* renumber) {
    EACH(c, n) renumber[c] = cardinality[c] > 0;
}
__global__ void count_members(const int* n2c, int n, int* cardinality) {
    EACH(v, n) atomicAdd(cardinality + n2c[v], 1);
}
__global__ void renumbered(const int* cardinality, const int* n2c_new, int n,
                           int* super_node_ptrs) {
    EACH(c, n) if (cardinality[c] > 0) super_node_ptrs[n2c_new[c]] = cardinality[c];
}
__global__ void group(const int* n2c, const int* n2c_new, const int* sizesOfNhoods, int n,
                      int* pos_ptr_of_new_comm, int* estimated, int* comm_nodes) {
    EACH(v, n) {
        const int c = n2c_new[n2c[v]];
        comm_nodes[atomicAdd(pos_ptr_of_new_comm + c, 1)] = v;
        atomicAdd(estimated + c, sizesOfNhoods[v]);
    }
}
// determineNewNeighborhood and findNewNeighodByBlock: the arcs of a community's members, added up.
template <int LANES, int SLOTS>
__global__ void aggregate(const int* listed, int count, Graph g, const int* n2c, const int* n2c_new,
                          const int* super_node_ptrs, const int* comm_nodes, const int* begins,
                          unsigned* new_neighbor_lists, float* new_weight_lists, int* member_count,
                          Tables tables) {
    __shared__ HashItem shared[THREADS / LANES * (SLOTS ? SLOTS : 1)];
    __shared__ int counts[THREADS / LANES];
    const int team = threadIdx.x / LANES, lane = threadIdx.x % LANES,
              teams = gridDim.x * (THREADS / LANES);
    HashItem* table = SLOTS ? shared + team * SLOTS : tables.items + tables.begins[blockIdx.x];
    for (int i = blockIdx.x * (THREADS / LANES) + team; i < count; i += teams) {
        const int c = listed[i], begin = begins[c];
        const int slots =
            SLOTS ? SLOTS
                  : largest_prime(tables.primes, tables.n_primes, 2 * (begins[c + 1] - begin));
        for (int s = lane; s < slots; s += LANES) table[s] = {-1, 0.0f};
        if (lane == 0) counts[team] = 0;
        meet<LANES>();
        for (int k = super_node_ptrs[c]; k < super_node_ptrs[c + 1]; k++) {
            const int v = comm_nodes[k];
            for (int j = g.indices[v] + lane; j < g.indices[v + 1]; j += LANES)
                add(table, slots, n2c_new[n2c[g.links[j]]], g.weight(j));
        }
        meet<LANES>();
        for (int s = lane; s < slots; s += LANES)
            if (table[s].community >= 0) {
                const int at = begin + atomicAdd(counts + team, 1);
                new_neighbor_lists[at] = table[s].community, new_weight_lists[at] = table[s].weight;
            }
        meet<LANES>();
        if (lane == 0) member_count[c] = counts[team];
        meet<LANES>();
    }
}
__global__ void to_csr(const int* begins, const unsigned* new_neighbor_lists,
                       const float* new_weight_lists, Graph next) {
    for (int c = blockIdx.x; c < next.n; c += gridDim.x)
        for (int j = next.indices[c] + threadIdx.x; j < next.indices[c + 1]; j += THREADS) {
            const int at = begins[c] + j - next.indices[c];
            next.links[j] = new_neighbor_lists[at], next.weights[j] = new_weight_lists[at];
        }
}

// Sizes of the tables of those listed first, twice their arcs each; returns the items of all.
int table_begins(const int* listed, int count, int most, const int* arcs,
                 std::vector<int>& begins) {
    begins.assign(1, 0);
    for (int i = 0; i < std::min(count, most); i++)
        begins.push_back(begins.back() + std::max(2 * value(arcs + value(listed + i)), 2));
    return begins.back();
}

Input made(int scale) {
    const int n = 1 << scale, edges = 8 * n;
    Input made{n, 2 * edges, 1, std::vector<int>(n + 1, 0), std::vector<int>(2 * edges)};
    unsigned state = 1;
    auto drawn = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
    std::vector<int> u(edges), v(edges), degrees(n, 0);
    for (int e = 0; e < edges; e++) {
        // One in four leaves its community, most often for a small number.
        u[e] = drawn() & (n - 1);
        do
            v[e] = drawn() & 3 ? (u[e] & ~127) | (drawn() & 127)
                               : (drawn() & (n - 1)) >> drawn() % scale;
        while (v[e] == u[e]);
        degrees[u[e]]++, degrees[v[e]]++;
    }
    for (int i = 0; i < n; i++) made.indices[i + 1] = made.indices[i] + degrees[i];
    for (int e = 0; e < edges; e++)
        for (auto [from, to] : {std::pair{u[e], v[e]}, std::pair{v[e], u[e]}})
            made.links[made.indices[from + 1] - degrees[from]--] = to;
    return made;
}
Input read(const char* path) {
    std::ifstream file(path, std::ios::binary);
    Input found;
    file.read((char*)&found, 12);
    found.indices.resize(found.n + 1), found.links.resize(found.arcs);
    file.read((char*)found.indices.data(), found.indices.size() * 4);
    file.read((char*)found.links.data(), found.links.size() * 4);
    if (!file) fprintf(stderr, "cannot read %s\n", path), exit(1);
    return found;
}

void run(const Input& input) {
    std::vector<int> primes{2};
    for (int p = 3; p < (1 << 28); p = std::max(p + 2, (p + p / 16) | 1)) {
        for (int d = 3; d <= p / d; d += 2)
            if (p % d == 0) p += 2, d = 1;
        primes.push_back(p);
    }
    Graph g{input.n, input.arcs};
    int* devPrimes;
    NEW(g.indices, g.n, graph);
    NEW(g.links, g.arcs, graph);
    put(input.indices, g.indices), put(input.links, g.links);
    if (input.weighted) {
        NEW(g.weights, g.arcs, graph);
        put(std::vector<float>(g.arcs, 1.0f), g.weights);
    }
    NEW(devPrimes, primes.size(), hash);
    put(primes, devPrimes);
    cudaMalloc(&partial, (CHUNKS + 1) * 4);
    double* sum;
    cudaMallocHost(&sum, 8);
    cudaDeviceSynchronize();
    const auto since = std::chrono::steady_clock::now();
    const float m2 = g.arcs;
    double modularity = -1;
    bool last = false;
    for (int level = 0;; level++) {
        int *sizesOfNhoods, *g_next_indices, *g_next_links, *n2c, *n2c_old, *n2c_new,
            *cardinalityOfComms, *cardinalityOfComms_new, *hashTablePtrs;
        float *wDegs, *tot, *tot_new, *in;
        double* result_array;
        HashItem* globalHashTable;
        const int n = g.n, all = blocks_for(n);
        NEW(sizesOfNhoods, n, scratch);
        NEW(g_next_indices, n, scratch);
        NEW(g_next_links, n, scratch);
        NEW(wDegs, n, scratch);
        NEW(result_array, n, scratch);
        NEW(n2c, n, community);
        NEW(n2c_old, n, community);
        NEW(n2c_new, n, community);
        NEW(tot, n, community);
        NEW(tot_new, n, community);
        NEW(in, n, community);
        NEW(cardinalityOfComms, n, community);
        NEW(cardinalityOfComms_new, n, community);
        launch(initialize, all, g, sizesOfNhoods, wDegs, n2c, n2c_new, tot, tot_new,
               cardinalityOfComms, cardinalityOfComms_new);
        const int ranges[7][2] = {{319, 1 << 30}, {5, 8},   {9, 16},  {1, 4},
                                  {17, 32},       {33, 83}, {84, 318}};
        int counts[7], begins[8] = {0};
        for (int b = 0; b < 7; b++) {
            counts[b] = bucket(sizesOfNhoods, n, ranges[b][0], ranges[b][1], g_next_links,
                               g_next_indices + begins[b], b == 0);
            begins[b + 1] = begins[b] + counts[b];
        }
        std::vector<int> tables;
        const int items =
            table_begins(g_next_indices, counts[0], TABLED_VERTICES, sizesOfNhoods, tables);
        NEW(globalHashTable, items, hash);
        NEW(hashTablePtrs, tables.size(), hash);
        cudaMemcpy(hashTablePtrs, tables.data(), tables.size() * 4, cudaMemcpyDefault);
        const Tables moving{globalHashTable, hashTablePtrs, devPrimes, (int)primes.size()};
        const double before = modularity;
        int iteration = 0;
        while (iteration++ < 1000) {
            launch(copy<int>, all, n2c, n, n2c_old);
            auto visit = [&](auto kernel, int b, int blocks) {
                launch(kernel, blocks, g_next_indices + begins[b], counts[b], g, n2c, tot,
                       cardinalityOfComms, wDegs, m2, n2c_new, tot_new, cardinalityOfComms_new,
                       moving);
                launch(commit, counts[b] ? all : 0, n2c_new, tot_new, cardinalityOfComms_new, n,
                       n2c, tot, cardinalityOfComms);
            };
            visit(move<128, 0>, 0, (int)tables.size() - 1);
            visit(move<8, 13>, 1, blocks_for(counts[1], 8));
            visit(move<16, 31>, 2, blocks_for(counts[2], 16));
            visit(move<4, 7>, 3, blocks_for(counts[3], 4));
            visit(move<32, 61>, 4, blocks_for(counts[4], 32));
            visit(move<32, 127>, 5, blocks_for(counts[5], 32));
            visit(move<128, 479>, 6, blocks_for(counts[6], 128));
            launch(fill<float>, all, in, n, 0.0f);
            launch(inside, all, g, n2c, in);
            launch(contributions, all, in, tot, n, (double)m2, result_array);
            launch(reduce, 1, result_array, n, sum);
            cudaDeviceSynchronize();
            const double gain = *sum - modularity;
            if (gain < 0) launch(copy<int>, all, n2c_old, n, n2c);
            else modularity = *sum;
            if (gain < LEAST_GAIN_OF_AN_ITERATION) break;
        }
        drop({n2c_old, tot, tot_new, in, wDegs, result_array, globalHashTable, hashTablePtrs,
              cardinalityOfComms_new});
        printf("level %d: %d vertices, %d arcs, %d iterations, modularity %.6f\n", level, n, g.arcs,
               iteration, modularity);
        if (modularity - before <= LEAST_GAIN && std::exchange(last, true)) break;

        int *renumber, *comm_nodes, *super_node_ptrs, *pos_ptr_of_new_comm,
            *estimatedSizeOfNeighborhoods, *member_count_per_new_comm;
        unsigned* new_neighbor_lists;
        float* new_weight_lists;
        NEW(renumber, n, scratch);
        NEW(comm_nodes, n, community);
        launch(fill<int>, all, cardinalityOfComms, n, 0);
        launch(count_members, all, n2c, n, cardinalityOfComms);
        launch(occupied, all, cardinalityOfComms, n, renumber);
        const int k = scan(renumber, n, n2c_new), some = blocks_for(k);
        NEW(super_node_ptrs, k, scratch);
        NEW(pos_ptr_of_new_comm, k, scratch);
        NEW(estimatedSizeOfNeighborhoods, k, scratch);
        NEW(member_count_per_new_comm, k, scratch);
        NEW(new_neighbor_lists, g.arcs, scratch);
        NEW(new_weight_lists, g.arcs, scratch);
        launch(renumbered, all, cardinalityOfComms, n2c_new, n, super_node_ptrs);
        scan(super_node_ptrs, k, super_node_ptrs);
        launch(copy<int>, some, super_node_ptrs, k, pos_ptr_of_new_comm);
        launch(fill<int>, some, estimatedSizeOfNeighborhoods, k, 0);
        launch(fill<int>, some, member_count_per_new_comm, k, 0);
        launch(group, all, n2c, n2c_new, sizesOfNhoods, n, pos_ptr_of_new_comm,
               estimatedSizeOfNeighborhoods, comm_nodes);
        const int sizes[3][2] = {{480, 1 << 30}, {128, 479}, {1, 127}};
        for (int b = 0; b < 3; b++) {
            counts[b] = bucket(estimatedSizeOfNeighborhoods, k, sizes[b][0], sizes[b][1],
                               g_next_links, g_next_indices + begins[b], b == 0);
            begins[b + 1] = begins[b] + counts[b];
        }
        const int merging_items = table_begins(g_next_indices, counts[0], TABLED_COMMUNITIES,
                                               estimatedSizeOfNeighborhoods, tables);
        NEW(globalHashTable, merging_items, hash);
        NEW(hashTablePtrs, tables.size(), hash);
        cudaMemcpy(hashTablePtrs, tables.data(), tables.size() * 4, cudaMemcpyDefault);
        const Tables merging{globalHashTable, hashTablePtrs, devPrimes, (int)primes.size()};
        scan(estimatedSizeOfNeighborhoods, k, estimatedSizeOfNeighborhoods);
        launch(fill<unsigned>, blocks_for(g.arcs), new_neighbor_lists, g.arcs, 0u);
        launch(fill<float>, blocks_for(g.arcs), new_weight_lists, g.arcs, 0.0f);
        auto merge = [&](auto kernel, int b, int blocks) {
            launch(kernel, blocks, g_next_indices + begins[b], counts[b], g, n2c, n2c_new,
                   super_node_ptrs, comm_nodes, estimatedSizeOfNeighborhoods, new_neighbor_lists,
                   new_weight_lists, member_count_per_new_comm, merging);
        };
        merge(aggregate<128, 0>, 0, (int)tables.size() - 1);
        merge(aggregate<128, 719>, 1, blocks_for(counts[1], 128));
        merge(aggregate<32, 191>, 2, blocks_for(counts[2], 32));
        Graph next{k};
        NEW(next.indices, k, scratch);
        next.arcs = scan(member_count_per_new_comm, k, next.indices);
        NEW(next.links, next.arcs, scratch);
        NEW(next.weights, next.arcs, scratch);
        launch(to_csr, std::min(k, 65536), estimatedSizeOfNeighborhoods, new_neighbor_lists,
               new_weight_lists, next);
        cudaDeviceSynchronize();
        drop({renumber, comm_nodes, super_node_ptrs, pos_ptr_of_new_comm,
              estimatedSizeOfNeighborhoods, member_count_per_new_comm, new_neighbor_lists,
              new_weight_lists, globalHashTable, hashTablePtrs, sizesOfNhoods, g_next_indices,
              g_next_links, n2c, n2c_new, cardinalityOfComms, g.indices, g.links, g.weights});
        g = next;
        swap_in(g.indices), swap_in(g.links), swap_in(g.weights);
    }
    cudaDeviceSynchronize();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - since;
    fprintf(stderr, "{\"placement\": \"%s\", \"seconds\": %f", placement.c_str(), seconds.count());
    for (auto [group, bytes] : peaks) fprintf(stderr, ", \"%s\": %zu", group.c_str(), bytes);
    fprintf(stderr, "}\n");
    while (!alive.empty()) drop({alive.begin()->first});
    peaks.clear();
    cudaFree(partial), cudaFreeHost(sum);
}

int main(int argc, char** argv) {
    const int scale = argc > 1 ? atoi(argv[1]) : 20;
    const Input input = scale ? made(scale) : read(argv[1]);
    int i = 2;
    do {
        placement = i < argc ? argv[i] : "managed";
        run(input);
    } while (++i < argc);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
