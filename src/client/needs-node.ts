/** Imported first, so that an older Node is told this, and not what it misses. */
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  throw new Error(`petstore/client needs Node 20.19 or newer (this is ${process.version})`);
}
