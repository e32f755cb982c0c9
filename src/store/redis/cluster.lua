-- 1 on a node of a cluster, 0 on a single server. KEYS[1] only leads the call to some node.
local info = redis.call('INFO', 'cluster')
return info:find('cluster_enabled:1', 1, true) and 1 or 0
