-- wrk takes the requests of a prepared file in turn, and prints as JSON what it found.
-- wrk ... -s wrk.lua URL -- REQUESTS.lua
local ready, next = {}, 0

function init(args)
  for _, call in ipairs(dofile(args[1])) do
    ready[#ready + 1] = wrk.format(call.method, call.path, call.headers, call.body)
  end
end

function request()
  next = next % #ready + 1
  return ready[next]
end

function done(summary, latency)
  local failed = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"refused":%d,"broken":%d,"p50":%d,"p90":%d,"p99":%d,"p999":%d,"max":%d}\n',
    summary.requests, summary.duration, failed.status,
    failed.connect + failed.read + failed.write + failed.timeout,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9), latency.max))
end
