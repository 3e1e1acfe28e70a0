// Package gpu describes the GPUs of a machine with their properties, measurements and errors. In: a program that reads the GPUs, or a file that lists
// simulated GPUs. Out: a report every few seconds.
package gpu

import "time"

// Report describes a machine's GPUs at one moment. The program that reads the GPUs writes each report as a line of JSON.
type Report struct {
	// Driver is the driver version, such as 550.54.15. CUDA is the newest CUDA version that the driver supports, such as 12.4.
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"`
	GPUs   []GPU  `json:"gpus"`
	// Events are the errors since the last report.
	Events []Event `json:"events,omitempty"`
}

// GPU describes a GPU of a machine.
type GPU struct {
	// Index is the number of the GPU on the machine. NVML numbers GPUs in the order of their buses.
	Index int32 `json:"index"`
	// Bus is the PCI address of the GPU, such as 0000:07:00.0.
	Bus string `json:"bus,omitempty"`
	// UUID identifies the GPU. UUID stays the same if the GPU is moved.
	UUID string `json:"uuid"`
	// Model is the name of the GPU's model, such as NVIDIA-A100-SXM4-80GB.
	Model string `json:"model"`
	// Memory is the size of the GPU's memory in bytes.
	Memory uint64 `json:"memory,omitempty"`
	// NUMA is the nearest NUMA node. NUMA is nil if the machine has only one NUMA node.
	NUMA *int64 `json:"numa,omitempty"`
	// Simulated means that the GPU doesn't exist. Machines without GPUs use simulated GPUs with device files that have no function.
	Simulated bool `json:"simulated,omitempty"`
	// Files are the device files that a container needs to use the GPU.
	Files []File `json:"files,omitempty"`
	// Lost means that the GPU no longer responds.
	Lost bool `json:"lost,omitempty"`
	// Unusable is the reason why containers can't use a responding GPU. Unusable is "" if containers can use the GPU.
	Unusable string `json:"unusable,omitempty"`
	// Processes is the number of processes that use the GPU. Processes is nil if the number is unknown, or if the GPU's memory may be in use without a
	// process.
	Processes *int `json:"processes,omitempty"`
	// MIG describes how the hardware splits the GPU into instances. MIG is nil if the GPU doesn't support instances.
	MIG *MIG `json:"mig,omitempty"`
	// Facts are further values for the vendor's labels on a Node. NVIDIA's facts use the names below, and AMD's facts use the names of AMD's node
	// labeller.
	Facts map[string]string `json:"facts,omitempty"`
	// Values are the measurements of the GPU. All vendors use the names and units of NVIDIA's dcgm-exporter. Values that a model doesn't
	// measure are missing.
	Values map[string]float64 `json:"values,omitempty"`
}

// File is a device file in a container.
type File struct {
	// Host is the path of the file on the machine. Container is the path of the file in a container.
	Host      string `json:"host"`
	Container string `json:"container"`
}

// Event is an error of a GPU that the driver has reported.
type Event struct {
	// Bus is the bus of the GPU, or "" if the bus is unknown.
	Bus string    `json:"bus"`
	At  time.Time `json:"at"`
	// XID is NVIDIA's number of the error. 0 means that a reset of the GPU cleared the errors.
	XID int `json:"xid,omitempty"`
}

// These are the names of facts about NVIDIA's GPUs.
const (
	Compute    = "compute" // CUDA's compute capability, such as 8.0
	MIGCapable = "mig"     // true or false: whether it can be split
)

// These are the names of facts about instances. The names are suffixes of the labels that GPU feature discovery writes (nvidia.com/gpu.…).
const (
	Multiprocessors = "multiprocessors"
	SlicesGI        = "slices.gi"
	SlicesCI        = "slices.ci"
	EnginesCopy     = "engines.copy"
	EnginesDecoder  = "engines.decoder"
	EnginesEncoder  = "engines.encoder"
	EnginesJPEG     = "engines.jpeg"
	EnginesOFA      = "engines.ofa"
)

// These are the names of measurements. The agent uses some of the measurements to determine the health of GPUs.
const (
	Temperature        = "DCGM_FI_DEV_GPU_TEMP"                    // °C
	Power              = "DCGM_FI_DEV_POWER_USAGE"                 // W
	Energy             = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"    // mJ
	Utilization        = "DCGM_FI_DEV_GPU_UTIL"                    // %
	MemoryUtilization  = "DCGM_FI_DEV_MEM_COPY_UTIL"               // %
	MemoryUsed         = "DCGM_FI_DEV_FB_USED"                     // MiB
	MemoryFree         = "DCGM_FI_DEV_FB_FREE"                     // MiB
	SMClock            = "DCGM_FI_DEV_SM_CLOCK"                    // MHz
	MemoryClock        = "DCGM_FI_DEV_MEM_CLOCK"                   // MHz
	ClockReasons       = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"        // bits
	XIDErrors          = "DCGM_FI_DEV_XID_ERRORS"                  // the last one
	SingleBitVolatile  = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"           // errors of memory that were corrected, since the driver was loaded
	DoubleBitVolatile  = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"           // errors of memory that couldn't be corrected, since the driver was loaded
	SingleBitAggregate = "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"           // corrected errors in the lifetime of the GPU
	DoubleBitAggregate = "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"           //
	RowsRemapped       = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"   // rows of memory that were replaced
	RowsRemappedUncorr = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS" //
	RowRemapPending    = "DCGM_FI_DEV_ROW_REMAP_PENDING"           // 1: the next reset replaces rows
	RowRemapFailed     = "DCGM_FI_DEV_ROW_REMAP_FAILURE"           // 1: there are no spare rows left
	PCIeReplays        = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"         //
	PCIeGeneration     = "DCGM_FI_DEV_PCIE_LINK_GEN"               // only AMD
	PCIeWidth          = "DCGM_FI_DEV_PCIE_LINK_WIDTH"             // lanes; only AMD
	OtherUncorrectable = "RAS_UNCORRECTABLE"                       // AMD: errors outside of the memory, since the driver was loaded; judged, but not a metric
	EngineActive       = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"           // shares of the time since the previous report, from 0 to 1; Hopper and later
	SMActive           = "DCGM_FI_PROF_SM_ACTIVE"                  // a mean of all multiprocessors
	SMOccupancy        = "DCGM_FI_PROF_SM_OCCUPANCY"               // share of the possible warps
	TensorActive       = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"         // tensor cores of any kind
	DRAMActive         = "DCGM_FI_PROF_DRAM_ACTIVE"                // the memory's bandwidth
	FP64Active         = "DCGM_FI_PROF_PIPE_FP64_ACTIVE"           //
	FP32Active         = "DCGM_FI_PROF_PIPE_FP32_ACTIVE"           //
	FP16Active         = "DCGM_FI_PROF_PIPE_FP16_ACTIVE"           //
	PCIeSent           = "DCGM_FI_PROF_PCIE_TX_BYTES"              // sent by the GPU, per second
	PCIeReceived       = "DCGM_FI_PROF_PCIE_RX_BYTES"              //
	NVLinkSent         = "DCGM_FI_PROF_NVLINK_TX_BYTES"            // over all links, per second
	NVLinkReceived     = "DCGM_FI_PROF_NVLINK_RX_BYTES"            //
	NVLinkReplays      = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
	NVLinkRecoveries   = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"
	NVLinkCRC          = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"
)
