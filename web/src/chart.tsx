// Lines over time. uPlot draws them; colours come from the style sheet, so that light and dark agree.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';

export interface Line {
  label: string;
  values: (number | null)[];
  /** A custom property of the style sheet. */
  color: string;
  fill?: boolean;
  /** Bars for what happens, lines for what is. */
  bars?: boolean;
}

interface Props {
  title: string;
  time: number[];
  lines: Line[];
  height: number;
  format: (value: number) => string;
  /** The same for the axis, if it should be shorter. */
  axis?: (value: number) => string;
  /** Small ones have no axes. */
  small?: boolean;
  /** It counts things: no halves on the axis. */
  whole?: boolean;
  onPick?: (time: number) => void;
  /** A moment to mark. */
  mark?: number | undefined;
}

/** Steps of an axis that counts things. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** How a chart is drawn; `mark` is asked for each time, because it may come after the chart. */
function options(props: Props, width: number, pointed: (at: number | null) => void, mark: () => number | undefined): uPlot.Options {
  const text = css('--dim');
  const grid = { stroke: css('--line'), width: 1 };
  const axis = { stroke: text, grid, ticks: grid, font: '11px system-ui, sans-serif' };
  const lines = props.lines.map((line): uPlot.Series => {
    const stroke = css(line.color);
    return {
      label: line.label,
      stroke,
      width: line.bars ? 0 : 1.75,
      ...(line.fill || line.bars ? { fill: `${stroke}${line.bars ? 'cc' : '22'}` } : {}),
      ...(line.bars && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.8, 12] }) } : {}),
      points: { show: false },
      value: (_, value) => (value === null ? '–' : props.format(value)),
    };
  });
  return {
    width,
    height: props.height,
    cursor: props.small ? { show: false } : { points: { size: 6 }, drag: { x: false, y: false } },
    legend: { show: false },
    padding: props.small ? [4, 0, 2, 0] : [8, 12, 0, 0],
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
    axes: props.small
      ? [{ show: false }, { show: false }]
      : [
          {
            ...axis,
            size: 28,
            space: 70,
            values: (_, ticks) =>
              ticks.map((tick) => {
                const t = new Date(tick * 1000);
                return `${String(t.getHours()).padStart(2, '0')}:${String(t.getMinutes()).padStart(2, '0')}`;
              }),
          },
          {
            ...axis,
            size: 58,
            space: 34,
            ...(props.whole ? { incrs: WHOLE } : {}),
            values: (_, ticks) => ticks.map((tick) => (props.axis ?? props.format)(tick)),
          },
        ],
    series: [
      {
        value: (_, value) => (value === null ? '–' : new Date(value * 1000).toTimeString().slice(0, 8)),
        label: 'time',
      },
      ...lines,
    ],
    hooks: {
      setCursor: [(plot) => pointed(plot.cursor.idx ?? null)],
      draw: [
        (plot) => {
          const marked = mark();
          if (marked === undefined) return;
          const x = plot.valToPos(marked, 'x', true);
          plot.ctx.save();
          plot.ctx.strokeStyle = css('--accent');
          plot.ctx.lineWidth = 2;
          plot.ctx.beginPath();
          plot.ctx.moveTo(x, plot.bbox.top);
          plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
          plot.ctx.stroke();
          plot.ctx.restore();
        },
      ],
    },
  };
}

export function Chart(props: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, point] = useState<number | null>(null);
  const data = (): uPlot.AlignedData => [latest.current.time, ...latest.current.lines.map((line) => line.values)];
  useEffect(() => {
    const home = box.current!;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(latest.current, Math.max(60, home.clientWidth), point, () => latest.current.mark), data(), home);
    };
    // Words and numbers first: a chart waits until they are painted.
    let first = requestAnimationFrame(() => (first = requestAnimationFrame(make)));
    const sized = new ResizeObserver(() => {
      const width = home.clientWidth;
      if (width > 0 && plot.current && plot.current.width !== width) {
        plot.current.setSize({ width, height: latest.current.height });
      }
    });
    sized.observe(home);
    const theme = matchMedia('(prefers-color-scheme: dark)');
    theme.addEventListener('change', make);
    addEventListener('bigfleet-theme', make);
    const pick = (event: MouseEvent) => {
      const shown = plot.current;
      if (!shown || !latest.current.onPick || !shown.over.contains(event.target as Node)) return;
      latest.current.onPick(shown.posToVal(event.offsetX, 'x'));
    };
    home.addEventListener('click', pick);
    return () => {
      cancelAnimationFrame(first);
      sized.disconnect();
      theme.removeEventListener('change', make);
      removeEventListener('bigfleet-theme', make);
      home.removeEventListener('click', pick);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [props.lines.length]);
  useEffect(() => {
    plot.current?.setData(data());
  }, [props.time, props.lines, props.mark]);
  const now = props.lines.map((line) => `${line.label} ${props.format(line.values.at(-1) ?? 0)}`).join(', ');
  return (
    <figure class={props.small ? 'chart small' : 'chart'} role="img" aria-label={`${props.title}: now ${now}`}>
      {!props.small && (
        <figcaption>
          <span>{props.title}</span>
          {props.lines.map((line) => (
            <span class="key">
              <i class={`c${line.color}`} />
              {line.label} <b>{props.format(line.values[at ?? line.values.length - 1] ?? 0)}</b>
            </span>
          ))}
          {at !== null && props.time[at] !== undefined && <span class="when">{new Date(props.time[at] * 1000).toTimeString().slice(0, 8)}</span>}
        </figcaption>
      )}
      <div ref={box} aria-hidden="true" style={{ minHeight: `${props.height}px` }} />
    </figure>
  );
}
