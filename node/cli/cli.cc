#include "node/cli/cli.h"

#include <CLI/CLI.hpp>
#include <functional>

#include "gossip/sim/simulate.h"
#include "node/cli/cli_context.h"
#include "node/config/cli_help.h"
#include "node/config/config_value.h"
#include "node/config/daemon_flags.h"
#include "node/config/version.h"

namespace kith::node {
namespace {

constexpr char kFooter[] =
    "Examples:\n"
    "  kith status --at run/a                 a node by its data directory\n"
    "  kith members --at 127.0.0.1:7480       or by its HTTP address\n"
    "  kith top --at run/a                    all members, live; h shows the keys\n"
    "  kith doctor hostB -c run.toml          why it cannot be reached or joined from here\n"
    "  kith checkpoint export --at run/a -o model.safetensors\n"
    "  kith simulate --nodes 1000 --seconds 20 --seed 7 --loss 0.1\n"
    "KITH_AT stands for --at; without both, 127.0.0.1:7480.\n"
    "Exit codes: 0 done, 1 error, 2 usage or configuration, 3 no daemon reached, 10 unhealthy.\n";

class CommandLine {
 public:
  explicit CommandLine(CliContext& context)
      : context_(context), app_("kith: sees and steers a decentralised training run.") {
    app_.name("kith");
    app_.footer(kFooter);
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app_.set_version_flag("--version", version_line("kith"));
    app_.add_option("--at", context_.at, "HOST:PORT of the daemon's HTTP, or its data directory");
    app_.add_option("-o,--output", format_, "what is written")
        ->check(CLI::IsMember({"table", "json"}));
    app_.require_subcommand(1);
    app_.fallthrough();
    add_daemon_commands();
    add_checkpoint_commands();
    add_config_commands();
    add_lists();
    add_simulate();
    add_pages();
  }

  Result<int> run(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      context_.out << app_.help();  // of the command that was named, if any
      return 0;
    } catch (const CLI::CallForVersion& version) {
      context_.out << version.what() << "\n";
      return 0;
    } catch (const CLI::ParseError& error) {
      return fail(ErrorCode::kUsage, explained(error));
    }
    context_.json = format_ == "json";
    return action_();
  }

 private:
  using Action = std::function<Result<int>()>;

  CLI::App* add(CLI::App& parent, const std::string& name, const std::string& help, Action action) {
    CLI::App* command = parent.add_subcommand(name, help);
    command->fallthrough();
    command->callback([this, action = std::move(action)] { action_ = action; });
    return command;
  }
  CLI::App* add(const std::string& name, const std::string& help,
                Result<int> (*command)(CliContext&)) {
    return add(app_, name, help, [this, command] { return command(context_); });
  }

  void add_daemon_commands() {
    add("status", "one node: state, health, step, loss, exchanges", status_command);
    add("members", "every member that the node knows: own steps, lag behind the deepest model",
        members_command);
    add("health", "one line a check; exit 0 or 10", health_command);
    add_top();
    add("leave", "finish exchanges, checkpoint, tell the others, end", leave_command);
    add(app_, "join", "contact another seed", [this] { return join_command(context_, text_); })
        ->add_option("address", text_, "HOST:PORT")
        ->required();
    add_doctor();
    add(app_, "keygen", "make a cluster key, mode 0600", [this] {
      return keygen_command(context_, text_.empty() ? "cluster.key" : text_);
    })->add_option("file", text_, "where to; default cluster.key");
  }

  void add_top() {
    CLI::App* command = add(app_, "top", "live table of the whole cluster; h shows the keys",
                            [this] { return top_command(context_, top_); });
    command->add_option("--interval", top_.interval_seconds, "seconds between looks; default 1");
    command->add_flag("--once", top_.once, "one table (or object), after two looks, and the end");
    command->add_flag("--alone", top_.alone, "ask no other member for its own figures");
    command->add_option("--sort", top_.sort, "order of the rows")
        ->check(CLI::IsMember({"name", "state", "step", "speed", "loss", "lag", "bytes", "rtt"}));
  }

  void add_doctor() {
    CLI::App* command =
        add(app_, "doctor", "why a node cannot be reached or joined from here; exit 0 or 10",
            [this] { return doctor_command(context_, doctor_); });
    command->add_option("address", doctor_.address, "HOST[:PORT] of its control plane")->required();
    command->add_option("--listen", doctor_.listen,
                        "HOST:PORT where this side would be dialled back, bulk on the next; "
                        "default: node.listen of "
                        "FILE");
    with_file(command, doctor_.config);
  }

  static void with_file(CLI::App* command, ConfigArguments& config) {
    command->add_option("-c,--config", config.file, "configuration (TOML)");
    command->add_option("--set", config.settings, "table.key=value; may be repeated")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
  }

  void add_checkpoint_commands() {
    CLI::App* group = app_.add_subcommand("checkpoint", "write, export and look into checkpoints");
    group->require_subcommand(1);
    group->fallthrough();
    add(*group, "now", "write one now", [this] { return checkpoint_now_command(context_); });
    add(*group, "show", "what a file holds, and whether it is intact",
        [this] { return checkpoint_show_command(context_, text_); })
        ->add_option("file", text_, "checkpoint, model or data directory")
        ->required();
    CLI::App* command =
        add(*group, "export",
            "parameters and buffers as safetensors; of a running node as they are now, its "
            "checkpoints stay",
            [this] { return checkpoint_export_command(context_, export_); });
    command->add_option("-o,--output", export_.to, "file to write; needed");
    command->add_option("from", export_.from,
                        "checkpoint, model or data directory; default: the daemon at --at");
    command->add_flag("--averaged", export_.averaged,
                      "the state that the peers see, or the final model");
  }

  void add_config_commands() {
    CLI::App* group = app_.add_subcommand("config", "look at a configuration");
    group->require_subcommand(1);
    group->fallthrough();
    with_file(add(*group, "show", "every effective value and where it comes from",
                  [this] { return config_show_command(context_, config_); }),
              config_);
    with_file(add(*group, "check", "valid or not, and why",
                  [this] { return config_check_command(context_, config_); }),
              config_);
    add(*group, "keys", "all keys, defaults and what they mean",
        [this] { return config_keys_command(context_); });
  }

  void add_lists() {
    add("methods", "training methods and the choices each is made of", methods_command);
    add("models", "model kinds", models_command);
    add("topologies", "with whom a node averages", topologies_command);
    add("codecs", "how values travel", codecs_command);
  }

  void add_simulate() {
    CLI::App* command = add(app_, "simulate", "the protocol in the deterministic simulator",
                            [this] { return simulate_command(context_, simulation_); });
    for (const auto& option : sim::simulation_options()) {
      const std::string name(option.name);
      const std::string flag = "--" + name;
      if (option.is_switch)
        command->add_flag_callback(
            flag, [this, name] { simulation_[name] = "true"; }, std::string(option.help));
      else
        command->add_option_function<std::string>(
            flag, [this, name](const std::string& value) { simulation_[name] = value; },
            std::string(option.help));
    }
  }

  // Made from the commands themselves, so they come last.
  void add_pages() {
    add_words("completion",
              "script that completes kith and kithd; bash: source <(kith completion bash)", "shell",
              {"bash", "zsh"}, [this] {
                return text_ == "bash" ? bash_completion(command_help(app_), kithd_help())
                                       : zsh_completion(command_help(app_), kithd_help());
              });
    add_words("man", "manual page: kith man kithd | man -l -", "page",
              {"kith", "kithd", "kith.toml"}, [this] {
                return text_ == "kith"    ? kith_page(command_help(app_))
                       : text_ == "kithd" ? kithd_page(kithd_help())
                                          : configuration_page();
              });
  }
  void add_words(const std::string& name, const std::string& help, const std::string& word,
                 const std::vector<std::string>& choices, std::function<std::string()> text) {
    add(app_, name, help,
        [this, text = std::move(text)] {
          context_.out << text();
          return Result<int>(0);
        })
        ->add_option(word, text_)
        ->required()
        ->check(CLI::IsMember(choices));
  }

  static CLI::App* deepest(CLI::App& app) {
    CLI::App* at = &app;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return at;
  }

  // CLI11's words, and for a misspelt command the nearest one.
  std::string explained(const CLI::ParseError& error) {
    std::string text = error.what();
    const CLI::App* at = deepest(app_);
    std::vector<std::string_view> names;
    for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    const auto extras = app_.remaining(true);
    const std::string_view near = extras.empty() ? "" : nearest(extras.front(), names);
    if (!near.empty())
      text = "unknown command " + in_quotes(extras.front()) + "; did you mean " + in_quotes(near) +
             "?";
    return text + " (see kith" + (at == &app_ ? "" : " " + at->get_name()) + " --help)";
  }

  CliContext& context_;
  CLI::App app_;
  std::string format_ = "table";
  std::string text_;
  ExportArguments export_;
  ConfigArguments config_;
  DoctorArguments doctor_;
  TopArguments top_;
  std::map<std::string, std::string> simulation_;
  Action action_;
};

}  // namespace

int run_cli(const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment, std::ostream& out,
            std::ostream& err, bool err_is_terminal, bool out_is_terminal) {
  CliContext context{.out = out,
                     .err = err,
                     .environment = environment,
                     .err_is_terminal = err_is_terminal,
                     .out_is_terminal = out_is_terminal};
  if (const auto at = environment.find("KITH_AT"); at != environment.end()) context.at = at->second;
  auto code = CommandLine(context).run(arguments);
  out.flush();
  if (!code) {
    err << "kith: " << code.error().message << "\n";
    return exit_code(code.error().code);
  }
  if (!out) {
    err << "kith: cannot write the result\n";
    return 1;
  }
  return *code;
}

}  // namespace kith::node
