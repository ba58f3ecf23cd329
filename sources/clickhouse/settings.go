package clickhouse

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/sources"
)

// must are settings that both users need as they are here, where the version knows them: with others an answer may be of fewer rows, of older ones, or another one, and no error says
// so. Every statement also compares the number of rows and their checksums.
var must = map[string][]string{
	"skip_unavailable_shards":                   {"0"}, // else a shard that is down is left out
	"read_overflow_mode":                        {"throw"},
	"read_overflow_mode_leaf":                   {"throw"},
	"group_by_overflow_mode":                    {"throw"},
	"sort_overflow_mode":                        {"throw"},
	"result_overflow_mode":                      {"throw"},
	"timeout_overflow_mode":                     {"throw"},
	"timeout_overflow_mode_leaf":                {"throw"},
	"set_overflow_mode":                         {"throw"},
	"join_overflow_mode":                        {"throw"},
	"transfer_overflow_mode":                    {"throw"},
	"distinct_overflow_mode":                    {"throw"},
	"limit":                                     {"0"}, // rows of any result
	"offset":                                    {"0"},
	"additional_table_filters":                  {"{}", ""},
	"additional_result_filter":                  {""},
	"parallel_replicas_count":                   {"0"}, // a part of the rows, for who adds them up
	"parallel_replicas_custom_key":              {""},
	"use_query_cache":                           {"0"}, // what was answered before a row was changed
	"extremes":                                  {"0"}, // blocks that are no rows
	"empty_result_for_aggregation_by_empty_set": {"0"},
	"aggregate_functions_null_for_empty":        {"0"},
	"group_by_use_nulls":                        {"0"},
	"join_use_nulls":                            {"0"},
	"apply_deleted_mask":                        {"1"}, // else rows that were deleted are read
}

// mustOfReader are those of the reader alone.
var mustOfReader = map[string][]string{
	"short_circuit_function_evaluation": {"disable"}, // else how long a statement takes tells what rows say
}

// limited are settings of the reader that must not be 0, which is no limit.
var limited = map[string]string{
	"max_execution_time": "seconds",
	"max_memory_usage":   "bytes",
}

// checkSettings refuses users by whom an answer could be wrong without an error, and a reader who can write.
func checkSettings(ctx context.Context, c *conn) error {
	for _, as := range []user{c.o.loader, c.o.reader} {
		isReader := as == c.o.reader
		names := []string{"readonly"}
		for _, m := range []map[string][]string{must, mustOfReader} {
			for n := range m {
				names = append(names, n)
			}
		}
		for n := range limited {
			names = append(names, n)
		}
		slices.Sort(names)
		var list []string
		for _, n := range names {
			list = append(list, "'"+n+"'")
		}
		text, err := c.text(ctx, statement{as: as, text: "SELECT name, value FROM system.settings WHERE name IN (" + strings.Join(list, ", ") + ") FORMAT TabSeparatedRaw"})
		if err != nil {
			return err
		}
		if err := judge(as.name, isReader, readSettings(text)); err != nil {
			return err
		}
	}
	return nil
}

func readSettings(text []byte) map[string]string {
	values := map[string]string{}
	for l := range bytes.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(string(l), "\n"), "\t")
		values[name] = value
	}
	return values
}

// judge says what is wrong with a user's settings, all at once; names are in order.
func judge(who string, isReader bool, values map[string]string) error {
	var wrong []string
	check := func(m map[string][]string) {
		for n, allowed := range m {
			if value, known := values[n]; known && !slices.Contains(allowed, value) {
				wrong = append(wrong, fmt.Sprintf("%s = %s", n, quoted(allowed[0])))
			}
		}
	}
	check(must)
	switch {
	case isReader:
		check(mustOfReader)
		if values["readonly"] != "1" && values["readonly"] != "2" {
			wrong = append(wrong, "readonly = 1")
		}
		for n, unit := range limited {
			if values[n] == "0" || values[n] == "" {
				wrong = append(wrong, n+" = (a number of "+unit+")")
			}
		}
	case values["readonly"] != "0":
		wrong = append(wrong, "readonly = 0")
	}
	if wrong == nil {
		return nil
	}
	slices.Sort(wrong)
	return &sources.Error{Kind: sources.Refused, Detail: fmt.Sprintf("the source's user %s needs other settings: with those that it has an answer could be wrong without an error, or rows could be written; set in its profile: %s",
		who, strings.Join(wrong, ", "))}
}

func quoted(value string) string {
	if _, err := strconv.Atoi(value); err == nil {
		return value
	}
	return "'" + value + "'"
}
