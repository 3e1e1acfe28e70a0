package report

import (
	"strings"

	"gopkg.in/yaml.v3"
)

type wire struct {
	ExitCode     *int   `yaml:"exitCode"`
	UserExitCode int    `yaml:"originUserExitCode"`
	UserLog      string `yaml:"matchedUserLogString"`
	PlatformLog  string `yaml:"matchedPlatformLogString"`
	GPU          struct {
		ECC bool `yaml:"nvidiaDoubleEccError"`
	} `yaml:"matchedGpuInfo"`
	OOMKilled bool   `yaml:"matchedOomKilled"`
	GPUFault  string `yaml:"gpuFault"`
	Logs      struct {
		User     string `yaml:"user"`
		Platform string `yaml:"platform"`
	} `yaml:"errorLogs"`
}

// Decode decodes the report in a termination message. ok is false if the message contains no complete report.
func Decode(text string) (r Report, ok bool) {
	_, rest, found := strings.Cut(text, Start)
	if !found {
		return r, false
	}
	body, _, found := strings.Cut(rest, End)
	if !found || len(body) > 1<<20 {
		return r, false
	}
	// A container may write any text, and some texts cause a panic in yaml.v3.
	defer func() {
		if recover() != nil {
			r, ok = Report{}, false
		}
	}()
	var w wire
	if err := yaml.Unmarshal([]byte(body), &w); err != nil || w.ExitCode == nil {
		return r, false
	}
	r = Report{ExitCode: *w.ExitCode, UserExitCode: w.UserExitCode, MatchedUserLog: w.UserLog, MatchedPlatformLog: w.PlatformLog,
		GPUECC: w.GPU.ECC, OOMKilled: w.OOMKilled, GPUFault: w.GPUFault, userAt: -1, platformAt: -1}
	r.UserLog, r.PlatformLog = split(w.Logs.User), split(w.Logs.Platform)
	return r, true
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
