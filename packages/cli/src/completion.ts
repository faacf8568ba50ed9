import type { Command, Option } from 'commander';
import { listNames } from './config';

/**
 * The completion scripts by shell. A script calls `drydock __complete`, so that it offers the words of the installed
 * version.
 */
const scripts = {
  bash: `_drydock() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(drydock __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _drydock drydock
`,
  zsh: `#compdef drydock
_drydock() {
  local line
  local -a found
  for line in "\${(@f)$(drydock __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${line%%$'\\t'*}:\${line#*$'\\t'}")
  done
  if (( $#found )); then _describe drydock found; else _files; fi
}
if [[ $funcstack[1] == _drydock ]]; then _drydock "$@"; else compdef _drydock drydock; fi
`,
  fish: `function __drydock_complete
  set -l words (commandline -opc) (commandline -ct)
  drydock __complete -- $words[2..-1] 2>/dev/null
end
complete -c drydock -f -a '(__drydock_complete)'
complete -c drydock -l body -r -F
`,
} as const;
const shells = Object.keys(scripts);

type Candidate = readonly [word: string, description: string];
const bare = (words: readonly string[]): Candidate[] => words.map((word) => [word, '']);

/** Returns the words that could complete the last of `words`. */
export function candidatesFor(program: Command, words: readonly string[]): Candidate[] {
  const unfinished = words.at(-1) ?? '';
  let command = program;
  let awaited: Option | undefined;
  for (const word of words.slice(0, -1)) {
    if (awaited !== undefined) awaited = undefined;
    else if (word.startsWith('-'))
      awaited = optionsOf(command).find(({ long, short, required }) => required && [long, short].includes(word));
    else command = command.commands.find((other) => other.name() === word) ?? command;
  }
  return offersOf(command, awaited, unfinished).filter(([word]) => word.startsWith(unfinished));
}

function offersOf(command: Command, awaited: Option | undefined, unfinished: string): Candidate[] {
  if (awaited !== undefined) return bare(awaited.long === '--context' ? listNames() : (awaited.argChoices ?? []));
  if (unfinished.startsWith('-'))
    return [...optionsOf(command), ...help].map(({ long, description }) => [long ?? '', description]);
  if (command.name() === 'completion') return bare(shells);
  if (command.parent?.name() === 'contexts' && ['use', 'remove'].includes(command.name())) return bare(listNames());
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((other) => other.name() !== 'help')
    .map((other) => [other.name(), other.summary() || other.description()]);
}

const help = [{ long: '--help', description: 'how it is used' }];
const optionsOf = (command: Command): Option[] => [
  ...command.options.filter(({ hidden }) => !hidden),
  ...(command.parent === null ? [] : optionsOf(command.parent)),
];

/** Adds `drydock completion SHELL`, and the command that the completion scripts call. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('What a shell reads to complete this command')
    .addArgument(program.createArgument('<shell>', 'the shell').choices(shells))
    .action((shell: keyof typeof scripts) => void process.stdout.write(scripts[shell]));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) => {
      const lines = candidatesFor(program, words).map(([word, text]) => `${word}\t${text.replace(/\s+/g, ' ')}\n`);
      process.stdout.write(lines.join(''));
    });
}
