package job

import (
	"fmt"
	"io"
	"os"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// readJob reads and checks one job file; "-" is stdin. Files that are too long are not read whole.
func readJob(s *iostreams.IOStreams, name string) (*protocol.Job, strictyaml.Findings, error) {
	r := s.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, protocol.MaxBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	j, findings := protocol.Parse(name, data)
	return j, findings, nil
}
