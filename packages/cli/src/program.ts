import { Command, Option } from 'commander';
import { type Options, runOperation } from './call';
import { groups } from './commands';
import { addCompletion } from './completion';
import { addContextCommands } from './config';
import { runDoctor } from './doctor';
import { version } from './generated/contract';
import { type ListenOptions, runListen } from './listen';
import { addOperations, parseDuration } from './operation';
import { type Format, formats } from './output';

const formatOf = (command: Command): Format => command.optsWithGlobals<Options>().output;

/**
 * Builds the whole command. The settings come before the subcommands, because commander copies the parent's settings to
 * a subcommand when the subcommand is added.
 */
export function buildProgram(): Command {
  const program = new Command('drydock')
    .description('The control plane of a hosting company, from a terminal or a script.')
    .version(`drydock for version ${version} of the API`, '-V, --version')
    .addOption(new Option('-o, --output <format>', 'how answers are printed').choices([...formats]).default('table'))
    .option('--context <name>', 'the installation to call, in place of the current one')
    .configureHelp({ showGlobalOptions: true, subcommandTerm: (command) => command.name() })
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'drydock: ')) })
    .showHelpAfterError('(--help says how it is used)')
    .exitOverride();
  addOperations(program, (id, given, options) => runOperation(id, given, options as Options));
  addContextCommands(program.command('contexts').description(groups['contexts'] ?? ''), formatOf);
  program
    .command('doctor')
    .description('Look at the address, the clock, the version, the services and the key, and say what to do')
    .action((_options: unknown, command: Command) => {
      const { context, output } = command.optsWithGlobals<Options>();
      return runDoctor(context, output);
    });
  program
    .command('listen')
    .description('Send events to a receiver on this machine, signed as a webhook is')
    .requiredOption('--forward-to <url>', 'the receiver, such as http://localhost:3000/hooks')
    .option(
      '--type <types>',
      'only these types: names with commas between them; workflow.* stands for all that begin so',
    )
    .option('--resource <path>', 'only events of this resource, such as /v1/sites/ID')
    .addOption(new Option('--timeout <time>', 'end after this, such as 90s or 10m').argParser(parseDuration))
    .option('--secret <secret>', 'sign with this one; left out, one is made and shown')
    .action((_options: unknown, command: Command) => runListen(command.optsWithGlobals<ListenOptions>()));
  addCompletion(program);
  return program;
}
