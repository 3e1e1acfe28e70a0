package rules

import "fmt"

// MaxLog is how much of the end of each log is searched.
const MaxLog = 10 << 20

// Exit is how a task's program ended, as the runtime saw it.
type Exit struct {
	Code int // of the program: 0 to 255, 128+n after signal n
	// UserLog and PlatformLog are the ends of what the program and the runtime wrote, in any bytes.
	UserLog, PlatformLog []byte
	// GPUECC: the driver counts double-bit errors of a GPU's memory.
	GPUECC bool
	// GPUFault is what the machine says is wrong with GPUs of the task; "" where nothing is, or nothing is said.
	GPUFault string
	// OOMKilled: the kernel killed a process of the container because its memory was used up.
	OOMKilled bool
}

// Match is what a failure means.
type Match struct {
	Rule Rule
	// Code is the rule's, except for exit codes that no rule knows.
	Code int
	// UserLog and PlatformLog are the texts that were found, and where in the cleaned log (Clean);
	// the position is -1 where none was.
	UserLog, PlatformLog     string
	UserLogAt, PlatformLogAt int
	// ExitCode, GPUECC, GPUFault, OOMKilled tell which other facts decided.
	ExitCode, GPUECC, GPUFault, OOMKilled bool
	// Known is false where no rule fitted.
	Known bool
}

// ClassifyExit finds the first rule that fits. Where none does the code is 255.
func (s *Set) ClassifyExit(e Exit) Match {
	if e.Code == 0 {
		return Match{Rule: s.ByCode(CodeSucceeded), UserLogAt: -1, PlatformLogAt: -1, Known: true}
	}
	user, platform := newText(e.UserLog), newText(e.PlatformLog)
	for _, r := range s.runtime {
		for _, p := range r.patterns {
			if m, ok := p.match(e, user, platform); ok {
				m.Rule, m.Known = s.Rules[r.rule], true
				m.Code = m.Rule.Code
				return m
			}
		}
	}
	return Match{Rule: s.ByCode(CodeUnknown), Code: CodeUnknown, UserLogAt: -1, PlatformLogAt: -1}
}

func (p *exitPattern) match(e Exit, user, platform *text) (Match, bool) {
	m := Match{UserLogAt: -1, PlatformLogAt: -1}
	if p.ExitCode != nil {
		if *p.ExitCode != e.Code {
			return m, false
		}
		m.ExitCode = true
	}
	if p.GPU != nil {
		if p.GPU.NvidiaDoubleEccError != e.GPUECC {
			return m, false
		}
		m.GPUECC = e.GPUECC
	}
	if p.GPUFault != nil {
		if *p.GPUFault != (e.GPUFault != "") {
			return m, false
		}
		m.GPUFault = *p.GPUFault
	}
	if p.OOMKilled != nil {
		if *p.OOMKilled != e.OOMKilled {
			return m, false
		}
		m.OOMKilled = e.OOMKilled
	}
	if p.user != nil {
		if m.UserLog, m.UserLogAt = user.find(p.user, p.LastLines, p.ErrorLine); m.UserLogAt < 0 {
			return m, false
		}
	}
	if p.platform != nil {
		if m.PlatformLog, m.PlatformLogAt = platform.find(p.platform, p.LastLines, p.ErrorLine); m.PlatformLogAt < 0 {
			return m, false
		}
	}
	return m, true
}

// Matched says in a few words what the rule was recognised by; empty where none fitted.
func (m Match) Matched() string {
	switch {
	case m.UserLog != "":
		return m.UserLog
	case m.PlatformLog != "":
		return m.PlatformLog
	case m.GPUECC:
		return "nvidiaDoubleEccError"
	case m.GPUFault:
		return "gpuFault"
	case m.OOMKilled:
		return "oomKilled"
	case m.ExitCode:
		return fmt.Sprintf("exit code %d", m.Code)
	}
	return ""
}
