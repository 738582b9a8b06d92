"""Where events come from: the driver, CUPTI, NVML, Nsight Systems, tracer, CPU recorder."""
