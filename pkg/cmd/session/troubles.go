package session

import (
	"fmt"
	"io"
	"strings"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// WriteTroubles prints the full message and the remedy of each problem below a table of machines. Machines with the same problem share one line.
func WriteTroubles(w io.Writer, machines []cluster.MachineStatus) {
	type trouble struct{ message, hint string }
	var order []trouble
	hosts := map[trouble][]string{}
	for _, m := range machines {
		if m.Hint == "" {
			continue
		}
		t := trouble{m.Message, m.Hint}
		if hosts[t] == nil {
			order = append(order, t)
		}
		hosts[t] = append(hosts[t], m.Host)
	}
	for i, t := range order {
		if i == 0 {
			fmt.Fprintln(w)
		}
		names := strings.Join(hosts[t], ", ")
		if n := len(hosts[t]); n > 5 {
			names = fmt.Sprintf("%s and %d more", strings.Join(hosts[t][:4], ", "), n-4)
		}
		fmt.Fprintf(w, "%s: %s\n  -> %s\n", names, terminal.Line(t.message), terminal.Line(t.hint))
	}
}
