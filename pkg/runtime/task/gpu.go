package task

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const (
	// smiLimit is the timeout of nvidia-smi. A run takes seconds if it has to load the driver. If a GPU is broken, nvidia-smi
	// hangs.
	smiLimit = 5 * time.Second
	// maxSMI is the maximum output of nvidia-smi, in bytes. The output for sixteen GPUs with all their processes has several
	// hundred KB.
	maxSMI = 8 << 20
)

// smi is the output of nvidia-smi: an XML document and error messages.
type smi struct{ document, complaints string }

// askSMI runs nvidia-smi until the context ends. It may return later if nvidia-smi hangs in the driver.
func askSMI(ctx context.Context, environ []string) smi {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, "nvidia-smi", "-q", "-x") // the reaper has stopped
	cmd.Env = environ
	cmd.WaitDelay = time.Second
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return smi{} // the image doesn't have nvidia-smi
	}
	data, _ := io.ReadAll(io.LimitReader(out, maxSMI)) // partial output counts, too
	if len(data) == maxSMI {
		cancel()
	}
	if cmd.Wait() == nil || ctx.Err() != nil {
		return smi{document: string(data)}
	}
	// nvidia-smi writes errors to standard output, with or without a document.
	return smi{string(data), complaints(words.String() + "\n" + outside(string(data)))}
}

// outside returns the output before and after the document.
func outside(text string) string {
	begin, end := strings.IndexByte(text, '<'), strings.LastIndexByte(text, '>')
	if begin < 0 || end < begin {
		return text
	}
	return text[:begin] + "\n" + text[end+1:]
}

// complaints returns the first few error messages in a text, shortened.
func complaints(text string) string {
	const lines, long = 3, 300
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if out = append(out, line[:min(len(line), long)]); len(out) == lines {
			break
		}
	}
	return strings.Join(out, "\n")
}

// waitSMI calls ask, but returns after the limit. Even SIGKILL doesn't stop a program that hangs in the driver.
func waitSMI(limit time.Duration, ask func(context.Context) smi) (smi, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answer := make(chan smi, 1)
	go func() { answer <- ask(ctx) }()
	select {
	case s := <-answer:
		return s, ctx.Err() == nil
	case <-ctx.Done():
		return smi{}, false
	}
}

// parseECC reports whether a GPU has counted uncorrectable memory errors since its driver was loaded. For GPUs up to Volta,
// nvidia-smi reports such errors as a total in double_bit. For later GPUs, it reports them by location: dram_uncorrectable,
// sram_uncorrectable and parts of the SRAM. With MIG, each device of a GPU has separate counts, and the GPU itself has no
// counts. parseECC ignores values that aren't numbers: "N/A", "[Not Supported]".
func parseECC(text string) bool {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false // the document's DTD isn't available
	var path []string
	for {
		token, err := d.Token()
		if err != nil {
			return false // the end of the document, or an error
		}
		switch e := token.(type) {
		case xml.StartElement:
			path = append(path, e.Name.Local)
		case xml.EndElement:
			path = path[:max(0, len(path)-1)]
		case xml.CharData:
			if n, err := strconv.Atoi(strings.TrimSpace(string(e))); err == nil && n > 0 && uncorrectable(path) {
				return true
			}
		}
	}
}

func uncorrectable(path []string) bool {
	volatile, double := false, false
	for _, p := range path {
		volatile = volatile || p == "volatile" || p == "volatile_count"
		double = double || p == "double_bit" || strings.Contains(p, "uncorrectable")
	}
	return volatile && double
}
