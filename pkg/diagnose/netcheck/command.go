package netcheck

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

const usage = `usage: netcheck serve [-listen :8080]      answer with POD_NAME, NODE_NAME and POD_IP
       netcheck get [-timeout 30s] URL       print a URL's answer
       netcheck resolve [-timeout 30s] NAME  print a name's addresses
`

// Run runs the program netcheck with command-line arguments.
func Run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	fs := flag.NewFlagSet("netcheck "+args[0], flag.ContinueOnError)
	listen := fs.String("listen", ":8080", "address to answer on")
	timeout := fs.Duration("timeout", 30*time.Second, "how long to keep asking")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "serve" && fs.NArg() == 0:
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", *listen)
		if err != nil {
			return err
		}
		return Serve(ctx, l, Identity{
			Pod: os.Getenv("POD_NAME"), Node: os.Getenv("NODE_NAME"), Address: os.Getenv("POD_IP"),
		})
	case args[0] == "get" && fs.NArg() == 1:
		client := &http.Client{Timeout: 5 * time.Second}
		return ask(ctx, *timeout, func(ctx context.Context) (string, error) {
			return Get(ctx, client, fs.Arg(0))
		})
	case args[0] == "resolve" && fs.NArg() == 1:
		return ask(ctx, *timeout, func(ctx context.Context) (string, error) {
			return Resolve(ctx, net.DefaultResolver, fs.Arg(0))
		})
	}
	return fmt.Errorf("unknown command line\n%s", usage)
}

func ask(ctx context.Context, timeout time.Duration, f func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := Try(ctx, 500*time.Millisecond, f)
	if err != nil {
		return err
	}
	fmt.Println(answer)
	return nil
}
