/**
 * What a check is tried on: your file beside it. With EXERCISES=solutions it is the reference solution, which is how
 * test/tour.test.ts proves that every exercise can be solved.
 */
export function attempt<Module>(name: string): Promise<Module> {
  const folder = process.env.EXERCISES === 'solutions' ? './solutions' : '.';
  return import(`${folder}/${name}.ts`);
}
