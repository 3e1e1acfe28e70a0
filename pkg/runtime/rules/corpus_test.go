package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// corpus contains outputs of programs with the expected codes. The exit code is 1 unless exit is set.
var corpus = map[string]struct {
	exit int
	log  string
	want int
}{
	"torch out of memory, 1.x":          {1, "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity)", 226},
	"torch out of memory, 2.x":          {1, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB", 226},
	"torch out of memory, 2.5":          {1, "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", 226},
	"torch out of memory, 0.4":          {1, "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58", 226},
	"torch out of memory, asynchronous": {1, "RuntimeError: CUDA error: out of memory", 226},
	"torch out of memory, abort":        {134, "terminate called after throwing an instance of 'c10::OutOfMemoryError'\n  what():  CUDA out of memory. Tried to allocate 1 GiB", 226},
	"hip out of memory":                 {1, "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256.00 MiB.", 226},
	"cublas":                            {1, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", 226},
	"jax out of memory":                 {1, "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 42949672960 bytes.", 226},
	"tensorflow out of memory":          {1, "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[512,512]", 221},
	"tensorflow, one line":              {1, "tensorflow/core ResourceExhaustedError (see above for traceback): OOM when allocating tensor", 221},
	"ecc by CUDA":                       {1, "failed: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered", 223},
	"ecc by torch":                      {134, "RuntimeError: CUDA error: uncorrectable ECC error encountered", 223},
	"driver too old":                    {1, "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version", 224},
	"no kernel image":                   {1, "RuntimeError: CUDA error: no kernel image is available for execution on the device", 224},
	"device assert":                     {1, "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported", 238},
	"illegal access":                    {1, "RuntimeError: CUDA error: an illegal memory access was encountered", 239},
	"illegal access seen by NCCL":       {134, "[rank0]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered", 239},
	"launch failure":                    {1, "RuntimeError: CUDA error: unspecified launch failure", 239},
	"no driver":                         {1, "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", 248},
	"no GPU":                            {1, "RuntimeError: No CUDA GPUs are available", 248},
	"GPU lost":                          {1, "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU", 118},
	"Xid of hardware":                   {1, "[ 123.45] NVRM: Xid (PCI:0000:3b:00): 74, pid=1234, NVLink: fatal error detected", 119},
	"Xid off the bus":                   {1, "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 118},
	"Xid of a program":                  {1, "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, Ch 00000008, MMU Fault", 239},
	"NVML mismatch":                     {1, "Failed to initialize NVML: Driver/library version mismatch", 117},
	"NCCL watchdog":                     {134, "[rank1]:[E1017 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.", 236},
	"NCCL system error":                 {1, "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.20.5\nncclSystemError: System call (e.g. socket, malloc) or external library call failed", 237},
	"disk full":                         {1, "OSError: [Errno 28] No space left on device", 240},
	"disk full, cp":                     {1, "cp: error writing '/data/x': No space left on device", 240},
	"quota":                             {1, "OSError: [Errno 122] Disk quota exceeded: '/mnt/out'", 240},
	"shm, DataLoader":                   {1, "RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.", 241},
	"shm, torch":                        {1, "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", 241},
	"shm, file":                         {1, "RuntimeError: unable to write to file </torch_35_1234>: No space left on device (28)", 241},
	"killed, bash":                      {137, "step 12\n/usr/local/pai/runtime.d/user.sh: line 3:    12 Killed                  python train.py", 227},
	"killed, alone":                     {137, "step 12\nKilled", 227},
	"killed, DataLoader":                {1, "RuntimeError: DataLoader worker (pid(s) 55) is killed by signal: Killed.", 227},
	"killed, kernel":                    {137, "Memory cgroup out of memory: Killed process 123 (python) total-vm:1kB", 227},
	"killed by nobody known":            {137, "step 12", 137},
	"MemoryError":                       {1, "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nMemoryError", 242},
	"numpy":                             {1, "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array", 242},
	"bad_alloc":                         {134, "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", 242},
	"torch on the CPU":                  {1, "RuntimeError: [enforce fail at alloc_cpu.cpp:66] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.", 242},
	"fork":                              {1, "OSError: [Errno 12] Cannot allocate memory", 242},
	"port in use":                       {1, "OSError: [Errno 98] Address already in use", 243},
	"port in use, torch":                {1, "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use", 243},
	"command not found, bash":           {127, "/usr/local/pai/runtime.d/user.sh: line 2: pyhton: command not found", 220},
	"command not found, dash":           {127, "sh: 1: pyhton: not found", 220},
	"command not found, no log":         {127, "", 220},
	"not executable":                    {126, "bash: ./run.sh: Permission denied", 246},
	"other architecture":                {126, "bash: ./a.out: cannot execute binary file: Exec format error", 246},
	"MPI segfault":                      {1, "[node1:00042] Signal code: Address not mapped (1)", 222},
	"cuDNN":                             {1, "E tensorflow/stream_executor/cuda/cuda_dnn.cc:378] Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.6.0.", 225},
	"argparse":                          {2, "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --batchsize 3", 228},
	"argparse, required":                {2, "train.py: error: the following arguments are required: --data", 228},
	"unknown option":                    {2, "unknown option --foo", 228},
	"tar":                               {64, "tar: unrecognized option '--foo'", 228},
	"dynamic_rnn":                       {1, "TypeError: dynamic_rnn() got multiple values for keyword argument 'dtype'", 228},
	"lua argument":                      {1, "bad argument #2 to '?' (out of range)", 228},
	"no file":                           {1, "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'", 229},
	"no script":                         {2, "python: can't open file '/data/train.py': [Errno 2] No such file or directory", 220},
	"no script, python3":                {2, "python3: can't open file 'train.py': [Errno 2] No such file or directory", 220},
	"no script, bash":                   {127, "bash: run.sh: No such file or directory", 220},
	"no script, dash":                   {2, "sh: 0: cannot open run.sh", 220},
	"line ends, bash":                   {127, "go.sh: line 2: $'\\r': command not found", 193},
	"line ends, bash, cd":               {1, "go.sh: line 1: cd: $'/tmp\\r': No such file or directory", 193},
	"line ends, bash, do":               {2, "go.sh: line 3: syntax error near unexpected token `$'do\\r''", 193},
	"line ends, bash, set":              {2, "go2.sh: line 1: set: -\r: invalid option\nset: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]", 193},
	"line ends, bash, interpreter":      {126, "bash: ./run.sh: /bin/bash^M: bad interpreter: No such file or directory", 193},
	"line ends, dash":                   {127, "go.sh: 2: \r: not found", 193},
	"line ends, dash, CRLF":             {2, "run2.sh: 1: set: Illegal option -\r\n", 193},
	"line ends, env":                    {127, "/usr/bin/env: ‘python3\\r’: No such file or directory\n/usr/bin/env: use -[v]S to pass options in shebang lines", 193},
	"line ends, env of busybox":         {127, "env: can't execute 'python3\r': No such file or directory", 193},
	"line ends, python":                 {2, "python3: can't open file '/usr/local/pai/code/train.py\\r': [Errno 2] No such file or directory", 193},
	"line ends, a file of python":       {1, "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv\\r'", 193},
	"line ends, a program of GNU":       {1, "sleep: invalid time interval ‘1\\r’\nTry 'sleep --help' for more information.", 193},
	"line ends, bash, export":           {1, "run.sh: line 2: export: `B\r': not a valid identifier", 193},
	"line ends, dash, export":           {2, "run.sh: 2: export: B\r: bad variable name", 193},
	"line ends, a number":               {1, "run.sh: line 2: [: 1\r: integer expression expected", 193},
	"line ends, an expression":          {1, "run.sh: line 2: 1+2\r\n: syntax error: invalid arithmetic operator (error token is \"\r\n\")", 193},
	"line ends, dash, do":               {2, "for.sh: 1: Syntax error: word unexpected (expecting \"do\")", 193},
	"line ends, busybox, do":            {2, "for.sh: line 1: syntax error: unexpected word (expecting \"do\")", 193},
	"byte order mark, bash":             {127, "bom.sh: line 1: \xEF\xBB\xBF#!/bin/bash: No such file or directory", 196},
	"byte order mark, dash":             {127, "bom.sh: 1: \xEF\xBB\xBFset: not found", 196},
	"byte order mark, passed over":      {1, "bom.sh: line 1: \xEF\xBB\xBF#!/bin/bash: No such file or directory\nValueError: x", 255},
	"interpreter, bash 5.2":             {127, "bash: line 1: ./run.sh: cannot execute: required file not found", 197},
	"interpreter, bash 5.1":             {126, "bash: ./run.sh: /bin/zsh: bad interpreter: No such file or directory", 197},
	"a carriage return in data":         {1, "read 'a\\r' from the port\nValueError: x", 255},
	"not set, bash":                     {1, "/usr/local/pai/runtime.d/user.sh: line 1: LD_LIBRARY_PATH: unbound variable", 194},
	"not set, bash -c":                  {127, "bash: line 1: X: unbound variable", 194},
	"not set, an argument":              {1, "run.sh: line 3: $1: unbound variable", 194},
	"not set, an element":               {1, "run.sh: line 3: HOSTS[2]: unbound variable", 194},
	"not set, dash":                     {2, "user.sh: 1: PORT: parameter not set", 194},
	"not set, the job's own check":      {1, "run.sh: line 2: DATA: parameter null or not set", 194},
	"not set, dash's own check":         {2, "user.sh: 1: DATA: parameter not set or null", 194},
	"not set, the name of a name":       {1, "run.sh: line 3: !x: unbound variable", 194},
	"not set, no name":                  {1, "run.sh: line 3: NOPE: invalid indirect expansion", 194},
	"not set, the last process":         {1, "run.sh: line 3: $!: unbound variable", 194},
	"not set, the last process, dash":   {2, "run.sh: 3: !: parameter not set", 194},
	"an unbound variable in prose":      {1, "note: unbound variable\nValueError: x", 255},
	"no data of a script":               {2, "python: can't open file '/data/train.csv': [Errno 2] No such file or directory", 229},
	"CUDA, old":                         {1, "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58", 226},
	"CUDA, old, without brackets":       {1, "RuntimeError: cuda runtime error 2 : out of memory", 226},
	"CUDA, old, checked":                {1, "THCudaCheck FAIL file=/pytorch/aten/src/THC/generic/THCStorage.cu line=58 error=2 : out of memory", 226},
	"TensorFlow":                        {1, "2020-01-01 00:00:00.000000: W tensorflow/core/framework/op_kernel.cc:1753] OP_REQUIRES failed at matmul_op.cc:481 : Invalid argument: Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]", 228},
	"TensorFlow, in Python":             {1, "tensorflow.python.framework.errors_impl.InvalidArgumentError: Incompatible shapes: [2,3] vs. [3,2]", 228},
	"no file, bash":                     {1, "bash: bd5/bd5_bar-train.ids: No such file or directory", 229},
	"no folder, bash":                   {1, "user.sh: line 1: cd: /nope: No such file or directory", 229},
	"no folder, dash":                   {2, "user.sh: 1: cd: can't cd to /nope", 229},
	"no folder, busybox":                {2, "user.sh: cd: line 1: can't cd to /nope: No such file or directory", 229},
	"unicode":                           {1, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0", 229},
	"empty pickle":                      {1, "EOFError: Ran out of input", 229},
	"checkpoint":                        {1, "ValueError: Restore called with invalid save path /tmp/x", 230},
	"syntax":                            {1, "  File \"a.py\", line 1\n    print(\n         ^\nSyntaxError: '(' was never closed", 231},
	"syntax, old":                       {1, "SyntaxError: invalid syntax", 231},
	"indentation":                       {1, "IndentationError: unexpected indent", 231},
	"syntax, bash":                      {2, "/usr/local/pai/runtime.d/user.sh: line 4: syntax error near unexpected token `fi'", 231},
	"syntax of bash, dash":              {2, "user.sh: 4: Bad substitution", 231},
	"syntax, dash":                      {2, "user.sh: 4: Syntax error: \"fi\" unexpected", 231},
	"attribute":                         {1, "AttributeError: 'NoneType' object has no attribute 'shape'", 231},
	"name":                              {1, "NameError: name 'foo' is not defined. Did you mean: 'fo'?", 231},
	"pickle":                            {1, "_pickle.UnpicklingError: invalid load key, 'v'.", 231},
	"module":                            {1, "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import nope\nModuleNotFoundError: No module named 'nope'", 232},
	"module of a rank":                  {1, "[rank0]: ModuleNotFoundError: No module named 'nope'", 232},
	"module of an MPI rank":             {1, "[1,0]<stderr>:ModuleNotFoundError: No module named 'nope'", 232},
	"module, coloured":                  {1, "\x1b[31mModuleNotFoundError\x1b[0m: No module named 'nope'", 232},
	"module, CRLF":                      {1, "ModuleNotFoundError: No module named 'nope'\r\n", 232},
	"module, logged":                    {1, "2026-01-02 03:04:05 ERROR root: ModuleNotFoundError: No module named 'nope'", 232},
	"import":                            {1, "ImportError: cannot import name 'x' from 'y'", 232},
	"python -m":                         {1, "/usr/bin/python3: No module named torch", 232},
	"index":                             {1, "IndexError: list index out of range", 233},
	"index, numpy":                      {1, "IndexError: index 5 is out of bounds for axis 0 with size 3", 233},
	"segfault of a child":               {1, "user.sh: line 3: 12 Segmentation fault      (core dumped) ./a.out", 234},
	"segfault":                          {139, "Segmentation fault (core dumped)", 139},
	"core":                              {1, "Aborted (core dumped)", 235},
	"permission":                        {1, "PermissionError: [Errno 13] Permission denied: '/data/out'", 244},
	"permission, mkdir":                 {1, "mkdir: cannot create directory '/x': Permission denied", 244},
	"rendezvous":                        {1, "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", 245},
	"master":                            {1, "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.0.0.1, 29500).", 245},
	"refused":                           {1, "ConnectionRefusedError: [Errno 111] Connection refused", 245},
	"name of a host":                    {1, "socket.gaierror: [Errno -3] Temporary failure in name resolution", 245},
	"abort":                             {134, "Aborted", 134},
	"terminated":                        {143, "Terminated", 143},
	"nothing known":                     {1, "ValueError: learning rate must be positive", 255},
	"nothing at all":                    {3, "", 255},
	"reserved by the controller":        {210, "", 255},
	"success":                           {0, "Segmentation fault\nCUDA out of memory. Tried to allocate", 0},

	// Words that have no meaning for the failure in these places.
	"a caught import":           {1, "WARNING: ImportError: No module named apex, going on without\nValueError: x", 255},
	"source of a handler":       {1, "    except ImportError:\n    raise ValueError(x)\nValueError: x", 255},
	"an option in prose":        {1, "# an unknown option is passed on\nValueError: x", 255},
	"a warning of an option":    {1, "warning: unknown option --x ignored\nValueError: x", 255},
	"an info of memory":         {1, "INFO: CUDA out of memory. Tried to allocate 1 GiB; halving the batch\nValueError: x", 255},
	"batch finder":              {1, "CUDA out of memory caught, halving the batch\nValueError: x", 255},
	"core limits":               {1, "ulimit: core dumped files are limited to 0 bytes\nValueError: x", 255},
	"an Xid that tells nothing": {1, "NVRM: Xid (PCI:0000:3b:00): 63, row remapper\nValueError: x", 255},
}

func TestLogsOfProgramsAreUnderstood(t *testing.T) {
	for name, c := range corpus {
		t.Run(name, func(t *testing.T) {
			m := Builtin().ClassifyExit(Exit{Code: c.exit, UserLog: []byte(c.log)})
			assert.Equal(t, c.want, m.Code, "%s %q", m.Rule.Phrase, m.Matched())
			assert.Equal(t, c.want != 255, m.Known)
		})
	}
}

func TestWhatWasWrittenLongBeforeTheEndExplainsNothing(t *testing.T) {
	later := strings.Repeat("epoch 1 step 2 loss 0.3\n", 3000) + "ValueError: x\n"
	for name, c := range corpus {
		if c.exit != 1 || c.want == 255 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := Builtin().ClassifyExit(Exit{Code: 1, UserLog: []byte(c.log + "\n" + later)})
			assert.Equal(t, 255, m.Code, m.Rule.Phrase)
		})
	}
}

func TestAWordInsideOfALongTracebackIsFound(t *testing.T) {
	log := strings.Repeat("  File \"x.py\", line 1, in f\n", 30) + "ModuleNotFoundError: No module named 'nope'\n" + strings.Repeat("E1122 torch/distributed/elastic: failed\n", 60)
	assert.Equal(t, 232, Builtin().ClassifyExit(Exit{Code: 1, UserLog: []byte(log)}).Code)
}
