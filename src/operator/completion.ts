/** `petstore completion`: a script for a shell, made of the table of commands. */
import { flagOf, type Spec } from './arguments.ts';
import { command } from './command.ts';
import { placesOf } from './help.ts';
import { type Option, oneOf, path, placed } from './options.ts';
import { print } from './output.ts';

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** `specs` is a function, since the list contains this command itself. */
export const completionCommand = (specs: () => readonly Spec[]) =>
  command({
    name: 'completion',
    does: 'print a script that completes commands and options in a shell',
    more: 'bash: source <(petstore completion bash); zsh: the same with zsh; fish: petstore completion fish | source.',
    options: { shell: placed(oneOf(Object.keys(SHELLS) as (keyof typeof SHELLS)[]), 'SHELL', 'the shell') },
    run: ({ shell }) => print(SHELLS[shell](specs()).trimEnd()),
  });

type Flag = [flag: string, option: Option<unknown>];

const flagsOf = ({ options }: Spec): Flag[] => [
  ...Object.entries(options).flatMap(([key, option]): Flag[] =>
    option.is === 'placed' ? [] : [[flagOf(key), option]],
  ),
  ['--help', HELP],
];
const HELP = { is: 'switch', help: 'show the options' } as Option<unknown>;

/** What may stand in the place of a command. */
const OF_NO_COMMAND = ['--help', '--version'];

const isFile = ({ allowed }: Option<unknown>): boolean => allowed === path.allowed;

/** For each beginning of a command, in whole words: the words that may come next. */
function nextWords(specs: readonly Spec[]): Map<string, Set<string>> {
  const next = new Map<string, Set<string>>();
  for (const { name } of specs) {
    const words = name.split(' ');
    for (const [at, word] of words.entries()) {
      const before = words.slice(0, at).join(' ');
      next.set(before, (next.get(before) ?? new Set()).add(word));
    }
  }
  return next;
}

/** For shells with `case`: the flags whose values can be completed, and the words possible at each place. */
function cases(specs: readonly Spec[], give: (words: string[]) => string, files: string): [string, string] {
  const values = new Map<string, string>();
  for (const [flag, option] of specs.flatMap(flagsOf)) {
    if (option.values !== undefined) values.set(flag, give([...option.values]));
    else if (isFile(option)) values.set(flag, files);
    else if (option.is !== 'switch') values.set(flag, ':');
  }
  const ofCommand = (spec: Spec) => {
    const words = [...flagsOf(spec).map(([flag]) => flag), ...placesOf(spec).flatMap(({ values = [] }) => values)];
    return placesOf(spec).some(isFile) ? `${give(words)}; ${files}` : give(words);
  };
  const commands = specs.map((spec) => `    '${spec.name}'|'${spec.name} '*) ${ofCommand(spec)} ;;`);
  const groups = [...nextWords(specs)].map(([before, words]) => {
    const flags = before === '' ? OF_NO_COMMAND : ['--help'];
    return `    '${before}') ${give([...words, ...flags])} ;;`;
  });
  return [
    [...values].map(([flag, what]) => `    ${flag}) ${what}; return ;;`).join('\n'),
    [...commands, ...groups].join('\n'),
  ];
}

function bashScript(specs: readonly Spec[]): string {
  const give = (words: string[]) => `COMPREPLY+=($(compgen -W '${words.join(' ')}' -- "$current"))`;
  const [values, places] = cases(specs, give, '_petstore_files');
  return `_petstore_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$current")
}
_petstore() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} inline=
  local line="\${COMP_WORDS[*]:1:COMP_CWORD-1}"
  COMPREPLY=()
  if [ "$current" = = ]; then current= inline=1
  elif [ "$before" = = ]; then before=\${COMP_WORDS[COMP_CWORD-2]} inline=1; fi
  case "$before" in
${values}
  esac
  [ -n "$inline" ] && return
  case "$line" in
${places}
  esac
}
complete -F _petstore petstore
`;
}

function zshScript(specs: readonly Spec[]): string {
  const [values, places] = cases(specs, (words) => `compadd -- ${words.join(' ')}`, '_files');
  return `#compdef petstore
_petstore() {
  local line="\${(j: :)words[2,CURRENT-1]}" before="\${words[CURRENT-1]}" inline=
  if [[ "$PREFIX" == --*=* ]]; then before="\${PREFIX%%=*}" inline=1; compset -P '*='; fi
  case "$before" in
${values}
  esac
  [[ -n "$inline" ]] && return
  case "$line" in
${places}
  esac
}
if [ "$funcstack[1]" = _petstore ]; then _petstore "$@"
elif (( $+functions[compdef] )); then compdef _petstore petstore
else echo 'petstore: zsh completes nothing before this: autoload -Uz compinit; compinit' >&2; fi
`;
}

function fishScript(specs: readonly Spec[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const lines = [
    'function __petstore_line; set -l words (commandline -opc); string join -- " " $words[2..-1]; end',
    'function __petstore_at; set -l line (__petstore_line); test "$line" = "$argv"; end',
    'function __petstore_in; set -l line (__petstore_line); string match -q -- "$argv *" "$line "; end',
    'complete -c petstore -f',
  ];
  for (const [before, words] of nextWords(specs)) {
    const here = `complete -c petstore -n ${quoted(`__petstore_at ${before}`.trim())}`;
    for (const flag of before === '' ? OF_NO_COMMAND : ['--help']) lines.push(`${here} -l ${flag.slice(2)}`);
    for (const word of words) {
      const spec = specs.find(({ name }) => name === `${before} ${word}`.trim());
      const does = quoted(spec?.does ?? `petstore ${word} …`);
      lines.push(`${here} -a ${word} -d ${does}`);
    }
  }
  for (const spec of specs) {
    const inside = `complete -c petstore -n ${quoted(`__petstore_in ${spec.name}`)}`;
    for (const [flag, option] of flagsOf(spec)) {
      const value = option.values ? ` -x -a ${quoted(option.values.join(' '))}` : isFile(option) ? ' -r -F' : ' -x';
      const takes = option.is === 'switch' ? '' : value;
      lines.push(`${inside} -l ${flag.slice(2)}${takes} -d ${quoted(option.help)}`);
    }
    for (const option of placesOf(spec)) {
      if (option.values) lines.push(`${inside} -a ${quoted(option.values.join(' '))}`);
      else if (isFile(option)) lines.push(`${inside} -F`);
    }
  }
  return `${lines.join('\n')}\n`;
}
