// Durations in nanoseconds as harness/src/samples.c tells them: in milliseconds.
export function summary(samples) {
  if (samples.length === 0) return { count: 0, mean: 0, median: 0, min: 0, max: 0, p99: 0 }
  const sorted = Float64Array.from(samples).sort()
  const last = sorted.length - 1
  const mean = sorted.reduce((sum, each) => sum + each, 0) / sorted.length
  const median = (sorted[Math.floor(last / 2)] + sorted[Math.ceil(last / 2)]) / 2
  const figures = { mean, median, min: sorted[0], max: sorted[last], p99: sorted[Math.floor(last * 0.99)] }
  return { count: sorted.length, ...Object.fromEntries(Object.entries(figures).map(([name, ns]) => [name, ns / 1e6])) }
}
