// The gateway in front of the oldest Socket.IO that the package says it works with: all that it does in front of the
// newest one. 4.0 does not tell of namespaces that are made later, so nobody could stand in front of them.

process.env.SOCKET_IO = "socket.io-oldest";

for (const part of ["connect", "limits", "order", "dedup", "traps", "burst", "gateway", "close"]) {
  await import(`../gateway/${part}.test.mjs`);
}
