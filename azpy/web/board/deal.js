// How is a game played that hides something? Its position is with the server, which tells what the person sees; nothing is
// kept, linked or searched here.

import { announce, byId, complain, fill, make, offer, onClick } from "./dom.js";
import { sideAsked, tell } from "./embed.js";
import { namesOf } from "./seats.js";

/** One person's games, one after the other. */
export class Deal {
  /** `model` is as the server describes it; `renew` has the newest network loaded. */
  constructor(connection, model, renew) {
    [this.connection, this.model, this.renew] = [connection, model, renew];
    this.isOn = false; // whether a game goes on
    this.awaited = null; // of the message that was sent last
    byId("main").hidden = true;
    byId("deal").hidden = false;
    byId("about").textContent = `${model.game}, ${model.internalName}`;
    const names = namesOf(model);
    offer("deal_side", names.map((name, side) => [`${side}`, name]), names.length > 1);
    byId("deal_side").value = `${names[sideAsked()] === undefined ? 0 : sideAsked()}`;
    onClick("deal_new", () => this.begin());
    byId("deal_side").onchange = () => this.begin();
    connection.addEventListener("lost", () => this.isOn && this.wait("The game ended with the connection."));
  }

  async begin() {
    await this.renew();
    return this.ask({ action: "deal", model: this.model.name, side: Number(byId("deal_side").value) });
  }

  /** Nothing can be played for now. */
  wait(why) {
    byId("deal_status").textContent = why;
    fill(byId("deal_actions"), []);
  }

  /** Sends a message, and shows what the person sees then. */
  async ask(message) {
    this.wait("…");
    this.isOn = true;
    const { answer } = this.connection.ask(message);
    this.awaited = answer;
    try {
      this.show(await answer);
      complain("");
    } catch (error) {
      if (this.awaited !== answer) return; // of a game before the one on the screen
      this.wait("The game cannot go on.");
      complain(error.message);
    }
  }

  show({ view, actions, result, moves }) {
    this.isOn = result === null;
    byId("view").textContent = view;
    byId("deal_status").textContent = result === null ? "Your move." : `${result}.`;
    byId("deal_played").textContent = result === null ? "" : `Played: ${moves.join(", ")}`;
    const button = (move) => make("button", { type: "button", textContent: move, onclick: () => this.ask({ action: "play", move }) });
    fill(byId("deal_actions"), actions.map(button));
    announce(`${view} ${byId("deal_status").textContent}`);
    if (result !== null) tell("end", { moves, result });
  }
}
