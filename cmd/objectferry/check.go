package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/check"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/route"
)

func newCheckCommand() *cobra.Command {
	var configFile, role string
	var live, asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Show every problem of the configuration; with --live also of permissions and queues",
		Long: `Show every problem of the configuration at once, each with its line.

--live also tries each permission and reads each queue setting that the service
will need or, with --role sweep or oncall, other commands. It consumes nothing and
changes nothing; what cannot be tried without that is listed as "not tried". Exit
code 1 says that a live check failed, 2 that the configuration is wrong.`,
		Example: `  objectferry check --config objectferry.yaml
  objectferry check --config objectferry.yaml --live --role copy   # run it as the role it is about
  objectferry check --config objectferry.yaml --live --role oncall`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := check.ParseRole(role)
			if err != nil {
				return usageError{err}
			}
			report := checkReport{}
			err = report.fill(c, configFile, r, live)
			if asJSON {
				err = errors.Join(err, printJSON(c.OutOrStdout(), report))
			} else {
				report.print(c.OutOrStdout())
			}
			return err
		},
	}
	c.Flags().StringVar(&configFile, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().BoolVar(&live, "live", false, "try permissions and read queue settings, too")
	c.Flags().StringVar(&role, "role", "all", "with --live, whose permissions: parse, copy, all (both), sweep or oncall")
	c.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	return c
}

// checkReport is what check prints.
type checkReport struct {
	OK       bool          `json:"ok"`
	Problems config.Errors `json:"problems,omitempty"`
	Routes   []checkRoute  `json:"routes,omitempty"`
	Live     []check.Item  `json:"live,omitempty"`
}

type checkRoute struct {
	Bucket  string   `json:"bucket"`
	Mode    string   `json:"mode"`
	Source  string   `json:"source"`
	Read    string   `json:"read"`
	Queue   string   `json:"queue"`
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
}

func (r *checkReport) fill(c *cobra.Command, configFile string, role check.Role, live bool) error {
	cfg, err := config.Load(configFile, nil)
	if err != nil {
		errors.As(err, &r.Problems)
		return err
	}
	routes, err := route.New(cfg.Routes)
	if err != nil {
		return usageError{err}
	}
	if err := check.Credentials(routes); err != nil {
		errors.As(err, &r.Problems)
		return err
	}
	for _, x := range routes.Routes() {
		r.Routes = append(r.Routes, checkRoute{x.Bucket, x.Mode, x.Source.COS, x.Source.Read, x.QueueURL(cfg.Queues.Sync), x.Include, x.Exclude})
	}
	if live {
		deps, err := check.Connect(c.Context(), cfg)
		if err != nil {
			return err
		}
		r.Live = check.Live(c.Context(), cfg, routes, role, deps)
	}
	failed := 0
	for _, item := range r.Live {
		if item.Status == check.Failed {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d live checks failed", failed, len(r.Live))
	}
	r.OK = true
	return nil
}

// print writes what is good; problems are the error and so go to standard error.
func (r *checkReport) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Routes) > 0 {
		fmt.Fprintf(t, "The configuration is good.\n\nBUCKET\tMODE\tSOURCE\tREAD\tINCLUDE\tEXCLUDE\n")
	}
	for _, x := range r.Routes {
		include := strings.Join(x.Include, " ")
		if include == "" {
			include = "everything"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", x.Bucket, x.Mode, x.Source, x.Read, include, strings.Join(x.Exclude, " "))
	}
	if len(r.Live) > 0 {
		fmt.Fprintf(t, "\nSTATUS\tNEEDS\tON\tNOTE\n")
	}
	for _, item := range r.Live {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", item.Status, item.Needs, item.On, item.Note)
	}
	t.Flush() // standard output; nobody is left to tell
}
