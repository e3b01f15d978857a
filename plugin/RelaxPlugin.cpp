// The pass `relax-pipeline` for a stock `mlir-opt`: runs passes of relax-mlir over a module.
//
// Those are Python on MLIR bindings of their own, whose symbols would clash with this process's. So
// `relax-opt` runs them in a child process. Text goes in and comes out, since the bytecode of one
// version of MLIR is not that of another.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>

using namespace mlir;

namespace {

// A file that exists until the end of its scope.
struct TemporaryFile {
  explicit TemporaryFile(StringRef suffix)
      : error(llvm::sys::fs::createTemporaryFile("relax", suffix, path)), remover(path) {
    if (error)
      remover.releaseFile();
  }

  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  SmallString<128> path;
  std::error_code error;
  llvm::FileRemover remover;
};

// The files through which a child process gets and gives what it works on.
struct Exchange {
  TemporaryFile input{"mlir"}, output{"mlir"}, diagnostics{"json"}, log{"txt"};

  std::error_code error() const {
    for (const TemporaryFile *file : {&input, &output, &diagnostics, &log})
      if (file->error)
        return file->error;
    return {};
  }
};

struct RelaxPipeline : PassWrapper<RelaxPipeline, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RelaxPipeline)

  RelaxPipeline() = default;
  RelaxPipeline(const RelaxPipeline &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "relax-pipeline"; }
  StringRef getDescription() const final { return "Runs passes of relax-mlir, by relax-opt"; }
  void runOnOperation() final {
    if (failed(run(getOperation())))
      signalPassFailure();
  }

  Option<std::string> passes{
      *this, "passes", llvm::cl::desc("The pipeline, such as relax-legalize-ops,canonicalize")};
  Option<std::string> program{*this, "relax-opt",
                              llvm::cl::desc("The program; by default that on the PATH"),
                              llvm::cl::init("relax-opt")};
  ListOption<std::string> loadPasses{*this, "load-passes",
                                     llvm::cl::desc("Python files with more passes")};
  ListOption<std::string> loadOps{*this, "load-ops",
                                  llvm::cl::desc("Python files with more operators")};
  Option<bool> timing{*this, "timing", llvm::cl::desc("Print how long each of the passes took"),
                      llvm::cl::init(false)};

private:
  LogicalResult run(ModuleOp module);
  LogicalResult write(ModuleOp module, const Exchange &files);
  FailureOr<int> runChild(ModuleOp module, StringRef file, const Exchange &files);
  LogicalResult splice(ModuleOp module, const Exchange &files);
};

LogicalResult RelaxPipeline::run(ModuleOp module) {
  auto file = llvm::sys::findProgramByName(program);
  if (!file || !llvm::sys::fs::can_execute(*file))
    return emitError(module.getLoc(), "relax-pipeline needs the program '")
           << program << "', which is not found; install the Python package relax-mlir, or give "
           << "{relax-opt=FILE}";
  Exchange files;
  if (std::error_code error = files.error())
    return emitError(module.getLoc(), "cannot create a temporary file: ") << error.message();
  if (failed(write(module, files)))
    return failure();
  FailureOr<int> status = runChild(module, *file, files);
  if (failed(status))
    return failure();
  return *status == 0 ? splice(module, files) : failure();
}

LogicalResult RelaxPipeline::write(ModuleOp module, const Exchange &files) {
  std::error_code error;
  llvm::raw_fd_ostream stream(files.input.path, error);
  if (!error) {
    module->print(stream, OpPrintingFlags().enableDebugInfo());
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return emitError(module.getLoc(), "cannot write '") << files.input.path << "': " << error.message();
  return success();
}

DiagnosticSeverity severityOf(StringRef name) {
  if (name == "warning")
    return DiagnosticSeverity::Warning;
  if (name == "remark")
    return DiagnosticSeverity::Remark;
  return name == "note" ? DiagnosticSeverity::Note : DiagnosticSeverity::Error;
}

// Where a diagnostic of relax-opt is; that of the module if it does not say.
Location locationOf(const llvm::json::Object &object, ModuleOp module) {
  int64_t line = object.getInteger("line").value_or(0);
  if (line < 1)
    return module.getLoc();
  return FileLineColLoc::get(module.getContext(), object.getString("file").value_or("-"),
                             unsigned(line), unsigned(object.getInteger("column").value_or(0)));
}

// Emits what relax-opt said, as diagnostics of this process.
void emitAgain(const llvm::json::Value &said, ModuleOp module) {
  const llvm::json::Array *list = said.getAsArray();
  for (const llvm::json::Value &value : list ? *list : llvm::json::Array()) {
    const llvm::json::Object *object = value.getAsObject();
    if (!object)
      continue;
    Diagnostic diagnostic(locationOf(*object, module),
                          severityOf(object->getString("severity").value_or("")));
    diagnostic << object->getString("message").value_or("");
    if (const llvm::json::Array *notes = object->getArray("notes"))
      for (const llvm::json::Value &note : *notes)
        if (const llvm::json::Object *each = note.getAsObject())
          diagnostic.attachNote(locationOf(*each, module))
              << each->getString("message").value_or("");
    module.getContext()->getDiagEngine().emit(std::move(diagnostic));
  }
}

// Runs relax-opt, and emits what it said; its exit status. Fails if it did not come to an end.
FailureOr<int> RelaxPipeline::runChild(ModuleOp module, StringRef file, const Exchange &files) {
  SmallVector<std::string> words{
      file.str(),       files.input.path.str().str(),
      "-o",             files.output.path.str().str(),
      "--pass-pipeline", "builtin.module(" + passes.getValue() + ")",
      "--diagnostics",  files.diagnostics.path.str().str(),
      "--mlir-print-debuginfo"};
  for (const std::string &each : loadPasses)
    words.append({"--load-passes", each});
  for (const std::string &each : loadOps)
    words.append({"--load-ops", each});
  if (timing)
    words.push_back("--mlir-timing");
  SmallVector<StringRef> arguments(words.begin(), words.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(), StringRef(files.log.path)};
  std::string reason;
  int status = llvm::sys::ExecuteAndWait(file, arguments, std::nullopt, redirects,
                                         /*SecondsToWait=*/0, /*MemoryLimit=*/0, &reason);
  std::string log = files.log.read();
  if (llvm::Expected<llvm::json::Value> said = llvm::json::parse(files.diagnostics.read())) {
    emitAgain(*said, module);
    llvm::errs() << log; // the report of times
    return status;
  } else {
    llvm::consumeError(said.takeError());
  }
  emitError(module.getLoc(), "the passes did not run: ")
      << (reason.empty() ? StringRef(log).trim() : reason);
  return failure();
}

LogicalResult RelaxPipeline::splice(ModuleOp module, const Exchange &files) {
  OwningOpRef<ModuleOp> result = parseSourceFile<ModuleOp>(files.output.path, module.getContext());
  if (!result)
    return emitError(module.getLoc(), "this version of MLIR cannot read what the passes made; the dialects "
                            "are declared by --irdl-file, others have to be known here");
  module.getBodyRegion().takeBody(result->getBodyRegion());
  module->setAttrs(result->getOperation()->getAttrDictionary());
  return success();
}

// The declarations of the dialects, which the build puts beside this library.
std::string declarations() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&declarations), &info) || !info.dli_fname)
    return "";
  SmallString<128> path(llvm::sys::path::parent_path(info.dli_fname));
  llvm::sys::path::append(path, "relax.irdl.mlir");
  return llvm::sys::fs::exists(path) ? std::string(path) : "";
}

// The input is parsed before passes can declare dialects, so the option of `mlir-opt` does it. It is
// set as if by default: another file on the command line takes its place.
void declareDialects() {
  auto &options = llvm::cl::getRegisteredOptions();
  auto found = options.find("irdl-file");
  std::string path = declarations();
  if (found == options.end() || path.empty() || found->second->getNumOccurrences())
    return;
  static_cast<llvm::cl::opt<std::string, true> *>(found->second)->setValue(path);
}

} // namespace

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "RelaxPlugin", LLVM_VERSION_STRING, [] {
            PassRegistration<RelaxPipeline>();
            declareDialects();
          }};
}
