package render

import (
	"os"
	"testing"

	"github.com/openpai/paictl/pkg/protocol"
)

// BenchmarkSubmission is what paictl itself does for one job.
func BenchmarkSubmission(b *testing.B) {
	text, err := os.ReadFile("../testdata/published/example.yaml")
	if err != nil {
		b.Fatal(err)
	}
	o := options()
	for b.Loop() {
		j, findings := protocol.Parse("example.yaml", text)
		if findings.Err() != nil {
			b.Fatal(findings)
		}
		if _, findings := Render(j, o); findings.Err() != nil {
			b.Fatal(findings)
		}
	}
}
