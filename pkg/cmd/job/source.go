package job

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/job/protocol"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// Source holds the options that, besides the job file, determine the objects of a submission. The commands submit and render have these flags.
type Source struct {
	// Parameters override the parameters of the files. Name overrides the name of the job, and requires that there is only one file.
	Parameters []string
	Name       string
	// Notify replaces the notices that the job file selects. If it is nil, the selection in the file is unchanged.
	Notify []string
	Group  string
	// Code is a folder that is uploaded with the job.
	Code string
}

func (s *Source) add(cmd *cobra.Command) {
	s.addText(cmd)
	s.addOptions(cmd)
}

// addText adds the flags that change the text of the job file.
func (s *Source) addText(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&s.Parameters, "set", nil, "NAME=VALUE: set a parameter of the file to another value; can be repeated")
	fl.StringVar(&s.Name, "name", "", "name of the job, instead of the file's")
	fl.StringSliceVar(&s.Notify, "notify", nil, "notices about this job, instead of your choices: started,finished,failed,stopped,retried, or none")
	_ = cmd.RegisterFlagCompletionFunc("notify", cobra.FixedCompletions(slices.Concat(slices.Sorted(maps.Keys(noticeWords)), []string{noNotices}), cobra.ShellCompDirectiveNoFileComp))
}

// addOptions adds the flags that don't change the text of the job file.
func (s *Source) addOptions(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&s.Group, "group", "", "your group, for its quota (default: the setting group)")
	fl.StringVar(&s.Code, "code", "", "folder to send with the job, as the tasks' working directory")
	_ = cmd.MarkFlagDirname("code")
}

func (s *Source) check() error {
	for _, p := range s.Parameters {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return cmdutil.Usagef("--set %s: write NAME=VALUE", p)
		}
	}
	_, err := s.notices()
	return err
}

// noNotices is the value of --notify that selects no notices.
const noNotices = "none"

// noticeWords maps the names of notices to the states that a job file contains for them.
var noticeWords = map[string]jobv1.NotifyState{
	string(peoplev1.NoticeStarted): jobv1.NotifyRunning, string(peoplev1.NoticeFinished): jobv1.NotifySucceeded, string(peoplev1.NoticeFailed): jobv1.NotifyFailed,
	string(peoplev1.NoticeStopped): jobv1.NotifyStopped, string(peoplev1.NoticeRetried): jobv1.NotifyRetried,
}

// notices parses the value of --notify. It rejects notices that a job file can't select.
func (s *Source) notices() (out []jobv1.NotifyState, err error) {
	for _, word := range s.Notify {
		state, known := noticeWords[word]
		switch {
		case known || slices.Contains(jobv1.NotifyStates(), jobv1.NotifyState(word)):
			if !known {
				state = jobv1.NotifyState(word)
			}
			if !slices.Contains(out, state) {
				out = append(out, state)
			}
		case word == noNotices && len(s.Notify) == 1:
		case word == noNotices:
			return nil, cmdutil.Usagef("--notify: write none alone")
		case slices.Contains(peoplev1.NoticeEvents(), peoplev1.NoticeEvent(word)):
			return nil, cmdutil.Usagef("--notify %s: a job file can't select this notice; choose it for all of your jobs: paictl notify set --add %s", word, word)
		default:
			return nil, cmdutil.Usagef("--notify %s: write started, finished, failed, stopped, retried or none", word)
		}
	}
	return out, nil
}

func (s *Source) group(f *cmdutil.Factory) string {
	if s.Group != "" {
		return s.Group
	}
	settings, err := f.Settings()
	if err != nil {
		return ""
	}
	return settings.GetString("group")
}

// read reads and parses job files. It reports all mistakes in all files together.
func (s *Source) read(f *cmdutil.Factory, files []string) ([]submission, error) {
	var all []submission
	for _, name := range files {
		data, err := s.text(f, name)
		if err != nil {
			return nil, err
		}
		all = append(all, unparsed(name, data))
	}
	return parse(f, all...)
}

// parse parses the texts of job files. It reports all mistakes in all texts together.
func parse(f *cmdutil.Factory, all ...submission) ([]submission, error) {
	var findings strictyaml.Findings
	for i := range all {
		s := &all[i]
		s.job, s.Reported = protocol.Parse(s.File, s.Text)
		findings = append(findings, s.Reported...)
		for _, before := range all[:i] {
			if s.job != nil && before.job != nil && before.job.Name == s.job.Name {
				findings = append(findings, s.job.Finding(strictyaml.Path{"name"}, "job/name", "the name is that of "+before.File, "give each job another name"))
			}
		}
	}
	return all, report(f, findings)
}

// text returns the text of a job file with the changes that the flags request.
func (s *Source) text(f *cmdutil.Factory, name string) ([]byte, error) {
	data, err := readJob(f.IO, name)
	if err != nil || len(data) > protocol.MaxBytes {
		return data, err // Parse rejects a file that is too long
	}
	return s.change(name, data)
}

// readJob reads one job file, or stdin for "-". It stops reading when the file exceeds the maximum length.
func readJob(s *iostreams.IOStreams, name string) ([]byte, error) {
	r := s.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		r = file
	}
	data, err := io.ReadAll(io.LimitReader(r, protocol.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// change changes the text of a job file as the flags request.
func (s *Source) change(name string, data []byte) (out []byte, err error) {
	for _, p := range s.Parameters {
		parameter, value, _ := strings.Cut(p, "=")
		if data, err = job.SetParameter(name, data, parameter, value); err != nil {
			return nil, err
		}
	}
	if s.Name != "" {
		if data, err = job.SetName(name, data, s.Name); err != nil {
			return nil, err
		}
	}
	if len(s.Notify) > 0 {
		states, err := s.notices()
		if err != nil {
			return nil, err
		}
		return job.SetNotify(name, data, states)
	}
	return data, nil
}

// defaultCodeURL is the URL that tasks download the code from if the cluster isn't queried.
const defaultCodeURL = tasksURL + "/code"

// defaultPeersURL is the URL where tasks look up each other's addresses if the cluster isn't queried.
const defaultPeersURL = tasksURL + "/peers"

const tasksURL = "http://" + api.Service + "." + kube.SystemNamespace + ".svc.cluster.local/v1"

// pack makes an archive of the folder with the job's code, and uploads it with send. If send is nil, the archive isn't uploaded. pack returns
// nil if the job has no code.
func (s *Source) pack(ctx context.Context, f *cmdutil.Factory, send func(*code.Archive) (bool, error)) (*job.Code, error) {
	if s.Code == "" {
		return nil, nil
	}
	a, err := code.Pack(ctx, s.Code)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	say := func(format string, args ...any) { fmt.Fprintf(f.IO.Err, format+"\n", args...) }
	warn := func(files []string, what, remedy string) {
		if n := len(files); n > 0 {
			say("warning: %s in %s with %s can't run on Linux: %s", plural.Of(n, "script"), s.Code, what, terminal.Line(strings.Join(files[:min(n, 5)], ", ")))
			say("  -> %s", remedy)
		}
	}
	warn(a.Windows, "the line ends of Windows", "convert the line ends with: sed -i 's/\\r$//' FILE, or dos2unix FILE")
	warn(a.Marked, "a byte order mark", "save as UTF-8 without a byte order mark and with the line ends of Linux, or: dos2unix FILE")
	for _, name := range a.Skipped {
		say("warning: %s is not sent: it is not a file, or it is a link that points outside of the folder", name)
	}
	out := &job.Code{SHA256: a.SHA256, Size: a.Size}
	what := fmt.Sprintf("%s: %s, %s (%s packed)", s.Code, plural.Of(a.Files, "file"), code.Size(a.Bytes), code.Size(a.Size))
	if send == nil {
		say("%s would be sent", what)
		return out, nil
	}
	sent, err := send(a)
	switch {
	case err != nil:
		return nil, err
	case sent:
		say("%s sent", what)
	default:
		say("%s; the cluster already has it", what)
	}
	return out, nil
}
