/** Runs before anything that an older Node could not read, and tells it in one sentence. A newer one than was tried is told. */
{
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    console.error(`petstore needs Node 20.19 or newer; this is Node ${process.versions.node}.`);
    process.exit(1);
  }
  if (major > 26) console.error(`petstore is tested on Node 20.19 to 26; this is Node ${process.versions.node}.`);
}
