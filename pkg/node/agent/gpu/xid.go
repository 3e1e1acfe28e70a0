package gpu

import "fmt"

// Action is the reaction that an error requires.
type Action string

// These are the actions, from the least to the most disruptive.
const (
	// None means that the program caused the error, or that the error is a consequence of another error.
	None Action = "none"
	// Look means that the GPU or the program may have caused the error. The GPU continues to work.
	Look Action = "look"
	// Reset means that the GPU doesn't work correctly until a reset. A restart of the machine also resets the GPU.
	Reset Action = "reset"
	// Restart means that the GPU doesn't respond until the machine restarts.
	Restart Action = "restart"
)

// XID is an error that NVIDIA's driver reports with a number.
type XID struct {
	Code    int
	Meaning string
	Action  Action
}

// xids returns the known errors by code. The numbers, meanings and remedies are from NVIDIA's "XID Errors" catalog
// (docs.nvidia.com/deploy/xid-errors, read in 2026). The decisions about which errors make a GPU unusable for jobs are ours.
func xids() []XID {
	return []XID{
		{8, "the GPU stopped processing", Look},
		{13, "a program used the graphics engine incorrectly", None},
		{31, "a program accessed invalid memory", None},
		{32, "the driver received a corrupt command list", Look},
		{38, "the driver's firmware failed", Look},
		{43, "a program's work was stopped after its own error", None},
		{45, "a program's work was cleaned up", None},
		{46, "it stopped processing", Reset},
		{48, "its memory has an uncorrectable error", Reset},
		{61, "its internal controller stopped", Reset},
		{62, "its internal controller halted", Reset},
		{63, "it has recorded memory to replace at its next reset", Look},
		{64, "it couldn't record memory to replace", Reset},
		{68, "its video decoder failed", Look},
		{69, "a program used the graphics engine incorrectly", None},
		{74, "its NVLink failed", Reset},
		{79, "it has fallen off the bus", Restart},
		{92, "its memory has many corrected errors", Look},
		{94, "its memory had an uncorrectable error, which affected only the program that used it", Look},
		{95, "its memory has an uncorrectable error, which may have reached others", Reset},
		{109, "a program's work took too long to be switched", Look},
		{110, "a security fault", Restart},
		{119, "its system processor doesn't answer", Reset},
		{120, "its system processor failed", Reset},
		{121, "its link to the processor had a corrected error", Look},
		{140, "its memory has an error that wasn't recovered from", Reset},
		{143, "it couldn't be initialised", Reset},
		{154, "the driver says what it needs to recover; its log has it", Look},
	}
}

// FindXID returns the description of an error. The action of an unknown error is Look.
func FindXID(code int) XID {
	for _, x := range xids() {
		if x.Code == code {
			return x
		}
	}
	return XID{code, "an unknown error", Look}
}

// BreaksGPU reports whether a GPU with this error no longer works correctly.
func (x XID) BreaksGPU() bool { return x.Action == Reset || x.Action == Restart }

// String returns the meaning of the error and the remedy.
func (x XID) String() string {
	text := fmt.Sprintf("XID %d: %s", x.Code, x.Meaning)
	switch x.Action {
	case Reset:
		text += "; reset it, or restart the machine"
	case Restart:
		text += "; restart the machine"
	}
	return text
}
